"""The default method as a user meets it: parameters, plans, and the estimator's promises."""

import json
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hilander.training.plans import (
    EVIDENCE_K,
    FEWEST_K,
    FEWEST_K_LEARNT,
    fit_k,
    make_plan,
    make_scorer,
    prepare,
    rules_for,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hilander import HiLander
from hilander.errors import GraphError, SettingError
from hilander.knn.search import build_knn_graph
from hilander.learning import loop
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.training import LearningSettings
from hilander.linkage.storage import PRETRAINED, read_model
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import recipe as evidence_training
from hilander.training.evidence import thresholds as evidence_judging
from hilander.training.evidence.recipe import EvidencePlan
from hilander.training.evidence.thresholds import Judge
from hilander.training.map_choice import ChosenMap
from hilander.training.paper.recipe import TrainingPlan, plans

QUICK = EvidenceLearning(epochs=2, batch_size=128, learning_rate=0.02, most_points=150)


def quick(**changes):
    return HiLander(**{"hidden": 16, "learning": QUICK, "device": "cpu", **changes})


@pytest.fixture(scope="module", autouse=True)
def small_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 30)
        patch.setattr(evidence_training, "Judge", partial(Judge, most_points=150))
        patch.setattr(evidence_judging, "P_TAU_GRID", (0.3, 0.45, 0.6, 0.75))
        patch.setattr(evidence_judging, "MERGE_GRID", (0.6, 0.9))
        yield


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=24, size=9, dim=16, spread=0.35, seed=0)


@pytest.fixture(scope="module")
def model(labelled, small_steps):
    """With the default method and all that is "auto"; not to be changed."""
    return quick().fit(*labelled)


@pytest.fixture(scope="module")
def unseen():
    return make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=1)


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


# Plans.


def test_the_default_is_evidence_with_communities_and_verified_merges(labelled):
    plan = make_plan(quick(), *labelled)
    assert isinstance(plan, EvidencePlan)
    assert (plan.rules.decoder, plan.rules.decoder_of(1)) == ("leiden", "contract")
    assert plan.rules.keep_links
    assert plan.rules.search_average
    assert plan.tune == ("p_tau",)
    fixed = make_plan(quick(p_tau=0.7, k=4), *labelled)
    assert (fixed.rules.p_tau, fixed.rules.k, fixed.tune) == (0.7, 4, ())


def test_the_papers_method_is_planned_as_the_paper_has_it(labelled):
    plan = make_plan(HiLander(method="paper"), *labelled)
    assert isinstance(plan, TrainingPlan)
    assert (plan.rules.k, plan.network.hidden, plan.network.dim) == (10, 512, 16)
    assert (plan.rules.decoder, plan.rules.keep_links) == ("parents", False)
    assert (plan.rules.p_tau_merge, plan.rules.search_average) == (None, False)


def test_epochs_take_the_place_of_those_of_the_learning(labelled):
    plan = make_plan(quick(epochs=7), *labelled)
    assert (plan.learning.epochs, plan.learning.most_points) == (7, QUICK.most_points)
    assert make_plan(quick(), *labelled).learning.epochs == QUICK.epochs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "evidance"}, "did you mean 'evidence'"),
        ({"learning": LearningSettings()}, "LearningSettings, .*needs EvidenceLearning"),
        ({"method": "paper"}, "EvidenceLearning, .*needs LearningSettings"),
        ({"whiten": "yes"}, "whiten='yes' must be True, False or"),
        ({"centre": "yes"}, "centre='yes'"),
        ({"hidden": 0}, "hidden=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"k": 0}, "k=0"),
        ({"k": 2.5}, "k=2.5"),
        ({"p_tau": 1.5}, "p_tau=1.5"),
        ({"p_tau": "Auto"}, "p_tau='Auto'"),
        ({"val_fraction": 2}, "val_fraction=2"),
        ({"random_state": None}, "seed=None"),
        ({"device": "abacus"}, "device='abacus'"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(labelled, settings, message):
    with pytest.raises(SettingError, match=message):
        quick(**settings).fit(*labelled)


def test_settings_can_be_numpy_numbers(tmp_path):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    numbers = {"k": np.int64(3), "epochs": np.int32(1), "hidden": np.int64(8)}
    odd = quick(**numbers, random_state=np.int64(0), p_tau=np.float64(0.5))
    odd.fit(X, y, checkpoint=tmp_path / "checkpoint")
    plain = quick(k=3, epochs=1, hidden=8, p_tau=0.5).fit(X, y)
    np.testing.assert_array_equal(odd.labels_, plain.labels_)


# k = "auto".


def test_k_does_not_follow_the_size_of_the_identities():
    for size in (3, 200):
        labels = np.repeat(np.arange(30), size)
        points = np.eye(len(labels), 4, dtype=np.float32)
        assert make_plan(HiLander(), points, labels).rules.k == EVIDENCE_K == 15


def test_few_points_have_fewer_neighbours_but_never_below_three_or_ten_to_learn_from():
    assert [fit_k(15, n) for n in (1000, 15, 5)] == [15, 14, 4]
    assert fit_k(15, 3) == FEWEST_K == 3  # refused afterwards, with what to do
    assert [fit_k(15, n, FEWEST_K_LEARNT) for n in (12, 11, 5)] == [11, 10, 10]
    assert fit_k(4, 5) == 4
    few = make_plan(HiLander(), np.eye(12, 4, dtype=np.float32), np.repeat(np.arange(4), 3))
    assert few.rules.k == 11


@pytest.mark.parametrize("method", ["evidence", "paper"])
def test_too_few_points_to_learn_from_are_told_without_a_k_that_nobody_named(method, unseen):
    X, y = unseen[0][:16:2], np.repeat([0, 1], 4)
    message = r"got only 8 labelled embeddings, learning needs at least 11; .*pretrained\(\)"
    with pytest.raises(GraphError, match=message):
        HiLander(method=method).fit(X, y)
    with pytest.raises(GraphError, match="k=8 needs 9 embeddings, got only 8; use k <= 7"):
        HiLander(method=method, k=8).fit(X, y)


def test_few_points_can_be_grouped_by_a_model_of_many(model, unseen):
    X, _ = unseen
    assert model.rules_.k == EVIDENCE_K
    assert next(model.walk(X)).graph.k == EVIDENCE_K
    assert next(model.walk(X[:12])).graph.k == 11
    assert next(model.walk(X[:12], k=3)).graph.k == 3
    assert next(model.walk(X[:6])).graph.k == 5
    assert next(HiLander.pretrained().walk(X[:40])).graph.k == 5
    with pytest.raises(GraphError, match="got only 3 embeddings, grouping needs at least 4"):
        model.predict(X[:3])
    with pytest.raises(GraphError, match="k=15 needs 16 embeddings"):
        model.cluster(X[:12], k=15)


def test_a_k_of_ones_own_is_not_changed_for_few_points(unseen):
    X, y = make_identities(n_identities=6, size=8, dim=16, seed=0)
    model = quick(k=12, epochs=1).fit(X, y)
    with pytest.raises(GraphError, match="k=12 needs 13 embeddings, got only 12"):
        model.predict(unseen[0][:12])


# What it learns.


def test_it_groups_identities_it_has_never_seen(model, unseen):
    X, y = unseen
    labels = model.predict(X)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))
    assert model.score(X, y) == bcubed_f(y, labels) > 0.9


def test_fit_leaves_what_was_promised(model, labelled):
    assert isinstance(model.network_, EvidenceNetwork)
    np.testing.assert_array_equal(model.labels_, model.predict(labelled[0]))
    table = model.summary_["validation"]
    chosen = {"p_tau": model.rules_.p_tau, "p_tau_merge": model.rules_.p_tau_merge}
    assert any(chosen.items() <= row.items() for row in table)
    assert model.summary_["n_identities"] == 24
    assert len(model.history_) == 4 * QUICK.epochs
    assert isinstance(make_scorer(model.network_, "cpu", model.rules_), EvidenceScorer)


def test_clone_copies_the_settings_and_nothing_learnt(model):
    anew = clone(model)
    assert anew.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        anew.predict(np.eye(16))


def test_levels_only_merge(model):
    X, _ = make_identities(n_identities=40, size=12, dim=16, spread=0.6, seed=2)
    eager = copy(model)
    eager.rules_ = replace(model.rules_, p_tau=0.9, p_tau_merge=0.001)
    found = eager.cluster(X)
    assert found.n_levels > 1
    for lower, upper in pairwise(found.labels(level) for level in range(found.n_levels)):
        assert len(np.unique(np.stack([lower, upper]), axis=1).T) == lower.max() + 1


def test_every_parent_is_at_least_as_dense(model, unseen):
    found = model.cluster(unseen[0])
    for number, level in enumerate(found.levels):
        parent, _ = found.parents(number)
        assert (level.density[parent] >= level.density).all()


@pytest.mark.parametrize("spread", [0.35, 0.9])
def test_renumbering_the_input_renumbers_the_output(model, spread):
    X, _ = make_identities(n_identities=40, size=9, dim=16, spread=spread, seed=3)
    one = model.cluster(X)
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(X))
        two = model.cluster(X[order])
        assert one.n_levels == two.n_levels
        for level in range(one.n_levels):
            assert same_partition(one.labels(level)[order], two.labels(level))


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.float64),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.concatenate([X, X], axis=1)[:, :16],
        lambda X: X.astype(">f4"),
        lambda X: X.tolist(),
        torch.from_numpy,
    ],
)
def test_the_same_numbers_in_any_container_give_the_same_clusters(model, unseen, convert):
    np.testing.assert_array_equal(model.predict(convert(unseen[0])), model.predict(unseen[0]))


def test_the_length_of_an_embedding_does_not_matter(model, unseen):
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(len(unseen[0]), 1))
    assert same_partition(model.predict(unseen[0] * lengths), model.predict(unseen[0]))


def test_a_graph_of_ones_own_takes_the_place_of_the_search(model, unseen):
    X, _ = unseen
    graph = build_knn_graph(model.preparation_.apply(X), EVIDENCE_K)
    np.testing.assert_array_equal(model.cluster(X, graph=graph).labels(), model.predict(X))


def test_exact_duplicates_by_the_thousand_cluster_together(model):
    distinct, _ = make_identities(n_identities=20, size=1, dim=16, seed=2)
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(20), [2000] + [50] * 19))
    labels = model.predict(distinct[y])
    assert len(np.unique(np.stack([labels, y]), axis=1).T) == 20  # nobody is in two clusters
    assert labels.max() > 10


@pytest.mark.parametrize("n_identities", [3, 12])
def test_well_separated_identities_with_negative_cosines_are_found(model, n_identities):
    X, y = make_identities(n_identities=n_identities, size=15, dim=16, spread=0.2, seed=3)
    assert bcubed_f(y, model.predict(X)) > 0.7


@pytest.mark.parametrize("changes", [{"n_identities": 2, "size": 12}, {"n_identities": 3}])
def test_few_identities_can_be_learnt_from(changes, unseen):
    X, y = make_identities(**{"size": 8, "dim": 16, "seed": 0, **changes})
    model = quick(epochs=1).fit(X, y)
    assert model.summary_["validation"] == []
    assert len(model.predict(unseen[0])) == len(unseen[0])


def test_the_same_seed_gives_the_same_weights_on_one_thread_and_on_two(labelled, monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 3)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            one = quick(epochs=1, p_tau=0.5).fit(*labelled)
            found.append((one.network_.state_dict(), one.labels_))
    finally:
        torch.set_num_threads(before)
    (weights, labels), (other_weights, other_labels) = found
    assert all(torch.equal(weights[key], other_weights[key]) for key in weights)
    np.testing.assert_array_equal(labels, other_labels)


def test_it_says_what_it_decided_only_when_asked(capsys):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    quick(epochs=1).fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")
    quick(epochs=1, verbose=True, whiten=True).fit(X, y)
    assert capsys.readouterr().out.count("whitened within identities") == 1


# Whitening.


def with_nuisance(seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(40), 8)
    noise = rng.normal(size=(len(labels), 16)) * ([3.5] * 3 + [0.4] * 13)
    return (rng.normal(size=(40, 16))[labels] + noise).astype(np.float32), labels


def test_whitening_is_done_when_it_helps_and_can_be_forced_or_forbidden(labelled):
    assert prepare(quick(), *with_nuisance(), 7).transform is not None
    assert prepare(quick(whiten=False), *with_nuisance(), 7).transform is None
    assert prepare(HiLander(method="paper"), *with_nuisance(), 7).transform is None
    assert prepare(quick(), *labelled, 7).transform is None
    assert prepare(quick(whiten=True), *labelled, 7).transform is not None
    assert prepare(HiLander(method="paper", whiten=True), *labelled, 7).transform is not None


def test_whitening_is_stored_and_applied(tmp_path):
    model = quick(epochs=1, p_tau=0.5).fit(*with_nuisance())
    assert model.preparation_.transform is not None
    again = HiLander.load(model.save(tmp_path / "model"), device="cpu")
    np.testing.assert_array_equal(again.preparation_.transform, model.preparation_.transform)
    X, y = with_nuisance(1)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    plain = quick(epochs=1, p_tau=0.5, whiten=False).fit(*with_nuisance())
    assert model.score(X, y) > plain.score(X, y)


def test_what_is_learnt_is_learnt_from_points_as_others_will_look(monkeypatch):
    X, y = with_nuisance()
    seen = []

    def learn(features, *rest):
        seen.append(features)
        return learn_as_planned(features, *rest)

    learn_as_planned = plans.learn
    monkeypatch.setattr(plans, "learn", learn)
    model = quick(epochs=1, p_tau=0.5).fit(X, y)
    preparation = model.preparation_
    assert np.abs(preparation.training_transform - preparation.transform).max() > 0.01
    np.testing.assert_array_equal(seen[0], preparation.apply_to_training_set(X))
    # The training set is then grouped as any other would be.
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_a_learned_metric_is_stored_as_one(tmp_path, monkeypatch):
    chosen = ChosenMap(np.diag(np.arange(1, 17.0)), np.eye(16), is_metric=True)
    monkeypatch.setattr(plans, "choose_map", lambda *_: chosen)
    model = quick(epochs=1, p_tau=0.5).fit(*with_nuisance())
    again = HiLander.load(model.save(tmp_path / "model"), device="cpu")
    assert "mapped by a metric" in again.preparation_.describe()
    X = with_nuisance(1)[0]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_identities_of_copies_alone_can_be_whitened():
    distinct = make_identities(n_identities=20, size=1, dim=8, seed=0)[0]
    y = np.repeat(np.arange(20), 4)
    assert quick(epochs=1, whiten=True).fit(distinct[y], y).labels_.shape == (80,)


# On disk.


def test_a_loaded_model_predicts_the_same_and_knows_the_same(model, unseen, tmp_path):
    X, _ = unseen
    folder = model.save(tmp_path / "model")
    again = HiLander.load(folder, device="cpu")
    one, two = model.cluster(X), again.cluster(X)
    assert one.n_levels == two.n_levels
    for level in range(one.n_levels):
        np.testing.assert_array_equal(one.labels(level), two.labels(level))
    np.testing.assert_array_equal(one.density, two.density)
    ours, theirs = model.network_.state_dict(), again.network_.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    for name in ("rules_", "history_", "summary_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.get_params() == model.get_params()
    description = json.loads((folder / "model.json").read_text())
    assert description["network"] == {
        "kind": "evidence",
        "hidden": 16,
        "members": 5,
        "relative_sizes": False,
        "small_set_points": 0,
        "set_context": False,
        "prior": read_model(PRETRAINED).network.settings.to_dict(),
        "own_weight": model.summary_["own_weight"],
    }


def test_a_fit_that_was_interrupted_goes_on_from_its_checkpoint(labelled, tmp_path, monkeypatch):
    whole = quick(p_tau=0.5).fit(*labelled)
    real, calls = loop.train_epoch, []

    def strike(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    interrupted = quick(p_tau=0.5)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_epoch", strike)
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(*labelled, checkpoint=tmp_path)
    interrupted.fit(*labelled, checkpoint=tmp_path)
    ours, theirs = whole.network_.state_dict(), interrupted.network_.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    np.testing.assert_array_equal(whole.labels_, interrupted.labels_)


def test_a_threshold_that_the_user_names_is_not_moved(model, labelled):
    points, labels = labelled
    assert model.rules_.p_tau_slope > 0
    assert rules_for(model, len(points)).p_tau_slope == model.rules_.p_tau_slope
    assert rules_for(model, len(points), p_tau=0.4).p_tau_slope == 0
    assert rules_for(model, len(points), p_tau=0.99).p_tau_merge == 0.99
    assert make_plan(HiLander(p_tau=0.4), points, labels).rules.p_tau_slope == 0
