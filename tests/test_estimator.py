"""The estimator with either method: fit, cluster, save and load, and scikit-learn's checks."""

import json
from copy import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilander import Hierarchy, HiLander
from hilander.errors import GraphError, LabelError, SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.knn.search import build_knn_graph
from hilander.learning import loop
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.training import LearningSettings
from hilander.linkage.storage import PRETRAINED, read_network
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.methods import METHODS

pytestmark = pytest.mark.usefixtures("small_steps")
EXPECTED_FAILURES = {
    "check_estimators_dtypes": "rounds uniform features down to all-zero rows; a row of zeros has "
    "no direction, and cosines are all this method sees",
    "check_methods_subset_invariance": "predicts one row at a time; rows are clustered jointly, "
    "and one row alone has no neighbour",
}
# Short training: a model that exists, whatever it has learned.
QUICK = {
    "evidence": {
        "hidden": 16,
        "learning": EvidenceLearning(epochs=2, batch_size=128, learning_rate=0.02, most_points=100),
    },
    "paper": {
        "k": 5,
        "hidden": 16,
        "epochs": 2,
        "learning": LearningSettings(
            batch_size=512, learning_rate=0.1, hierarchies=((5, 2), (3, 2))
        ),
    },
}
# Longer training: a model that clusters well enough to show it.
THOROUGH = {
    "evidence": {"epochs": 10},
    "paper": {
        "k": 10,
        "epochs": 40,
        "learning": LearningSettings(
            batch_size=128, optimizer="adamw", learning_rate=0.01, hierarchies=((10, 2), (5, 2))
        ),
    },
}
# BCubed F on new identities. One cluster for each point would score 0.2, one for all 0.06.
FLOORS = {"evidence": 0.9, "paper": 0.4}
NETWORKS = {"evidence": EvidenceNetwork, "paper": Lander}


def test_every_method_is_tested_here():
    assert set(QUICK) == set(THOROUGH) == set(FLOORS) == set(METHODS)


def quick(method, **changes):
    return HiLander(**{"method": method, "device": "cpu", **QUICK[method], **changes})


@pytest.fixture(scope="module", params=sorted(METHODS))
def method(request):
    return request.param


@pytest.fixture(scope="module")
def training_set():
    return make_identities(n_identities=40, size=8, dim=16, spread=0.45, seed=0)


@pytest.fixture(scope="module")
def model(method, training_set, small_steps):
    """With everything "auto" that is so by default; not to be changed."""
    return quick(method, **THOROUGH[method]).fit(*training_set)


@pytest.fixture(scope="module")
def unseen():
    return make_identities(n_identities=30, size=9, dim=16, spread=0.45, seed=1)


@pytest.fixture(scope="module")
def tiny():
    """Six identities of eight points: just enough to fit."""
    return make_identities(n_identities=6, size=8, dim=8, seed=0)


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


def same_weights(one, two):
    ours, theirs = one.network_.state_dict(), two.network_.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


# scikit-learn's manners.


@pytest.mark.filterwarnings("ignore:X has . features, expected at least 4:UserWarning")
@parametrize_with_checks(
    [
        quick("paper", k=3, hidden=8),
        # Large enough to find several clusters: with a single one every check of labels passes.
        quick("evidence", k=3, epochs=4, p_tau=0.5, learning=EvidenceLearning(most_points=60)),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_clone_copies_the_settings_and_nothing_learned(model):
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copied.predict(np.eye(16))


@pytest.mark.parametrize("call", ["predict", "cluster", "walk", "save"])
def test_an_unfitted_model_names_the_way_without_labels(call, tmp_path):
    given = tmp_path / "model" if call == "save" else np.eye(16)
    with pytest.raises(NotFittedError, match=r"fit\(X, y\).*HiLander\.pretrained\(\)"):
        getattr(HiLander(), call)(given)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("call", ["fit", "fit_predict"])
def test_learning_without_labels_names_the_way_without_labels(call, tiny):
    with pytest.raises(LabelError, match=r"y is None.*HiLander\.pretrained\(\)\.cluster\(X\)"):
        getattr(HiLander(), call)(tiny[0])


def test_a_failed_fit_leaves_the_model_as_it_was(method, tiny):
    X, y = tiny
    model = quick(method, epochs=1).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="labels"):
        model.fit(X[:, :4], y[:-1])
    np.testing.assert_array_equal(model.predict(X), before)


# Settings.


def test_settings_can_be_numpy_numbers(method, tiny, tmp_path):
    numbers = {"k": np.int64(3), "epochs": np.int32(1), "hidden": np.int64(8)}
    odd = quick(method, **numbers, random_state=np.int64(0), p_tau=np.float64(0.5))
    odd.fit(*tiny, checkpoint=tmp_path / "checkpoint")
    plain = quick(method, k=3, epochs=1, hidden=8, p_tau=0.5).fit(*tiny)
    np.testing.assert_array_equal(odd.labels_, plain.labels_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"k": 2.5}, "k=2.5"),
        ({"p_tau": 1.5}, "p_tau=1.5"),
        ({"p_tau": "Auto"}, "p_tau='Auto'"),
        ({"features": "mean"}, "features='mean' is not known"),
        ({"decoder": "leidn"}, "decoder='leidn' is not known; did you mean 'leiden'"),
        ({"hidden": 0}, "hidden=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"val_fraction": 2}, "val_fraction=2"),
        ({"centre": "yes"}, "centre='yes'"),
        ({"whiten": "yes"}, "whiten='yes' must be True, False or"),
        ({"random_state": None}, "random_state=None is not a seed"),
        ({"device": "abacus"}, "device='abacus'"),
        ({"learning": object()}, "learning is object, .* needs"),
    ],
)
def test_an_impossible_setting_is_refused(method, tiny, settings, message):
    with pytest.raises(SettingError, match=message):
        quick(method, **{"epochs": 1, **settings}).fit(*tiny)


def test_an_unknown_name_is_refused_with_the_nearest_one(tiny):
    with pytest.raises(SettingError, match="did you mean 'evidence'"):
        HiLander(method="evidance").fit(*tiny)
    with pytest.raises(SettingError, match="did you mean 'attention'"):
        quick("paper", encoder="attenton").fit(*tiny)


def test_too_few_training_points_are_reported_with_a_k_only_if_one_was_given(method, unseen):
    X, y = unseen[0][:16:2], np.repeat([0, 1], 4)
    message = r"got only 8 labelled embeddings, learning needs at least 11; .*pretrained\(\)"
    with pytest.raises(GraphError, match=message):
        HiLander(method=method).fit(X, y)
    with pytest.raises(GraphError, match="k=8 needs 9 embeddings, got only 8; use k <= 7"):
        HiLander(method=method, k=8).fit(X, y)


def test_k_is_lower_for_small_sets_unless_it_was_given(unseen, tiny):
    X = unseen[0]
    model = quick("evidence", epochs=1, p_tau=0.5).fit(X[:80], unseen[1][:80])
    default = model.rules_.k
    assert next(model.walk(X)).graph.k == default > 11
    assert next(model.walk(X[:12])).graph.k == 11
    assert next(model.walk(X[:12], k=3)).graph.k == 3
    assert next(model.walk(X[:6])).graph.k == 5
    assert next(HiLander.pretrained().walk(X[:40])).graph.k == 5
    with pytest.raises(GraphError, match="got only 3 embeddings, grouping needs at least 4"):
        model.predict(X[:3])
    with pytest.raises(GraphError, match="k=15 needs 16 embeddings"):
        model.cluster(X[:12], k=15)
    fixed = quick("evidence", epochs=1, p_tau=0.5, k=12).fit(*tiny)
    with pytest.raises(GraphError, match="k=12 needs 13 embeddings, got only 12"):
        fixed.predict(tiny[0][:12])


def test_decisions_are_printed_only_with_verbose(method, tiny, capsys):
    quick(method, epochs=1).fit(*tiny).predict(tiny[0])
    assert capsys.readouterr() == ("", "")
    quick(method, epochs=1, verbose=True, centre=True, whiten=True).fit(*tiny)
    printed = capsys.readouterr().out
    assert printed.count("centred on the training mean") == 1
    assert printed.count("whitened within identities") == 1


# What it learns.


def test_it_clusters_identities_it_has_never_seen(method, model, unseen):
    X, y = unseen
    labels = model.predict(X)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))
    assert model.score(X, y) == bcubed_f(y, labels) > FLOORS[method]
    assert model.score(X, [f"person {label}" for label in y]) == pytest.approx(model.score(X, y))


def test_fit_sets_the_promised_attributes(method, model, training_set):
    assert isinstance(model.network_, NETWORKS[method])
    assert isinstance(model.hierarchy_, Hierarchy)
    np.testing.assert_array_equal(model.labels_, model.hierarchy_.labels(-1))
    np.testing.assert_array_equal(model.labels_, model.predict(training_set[0]))
    assert model.n_features_in_ == 16
    assert model.history_
    assert model.summary_["n_identities"] == 40
    table = model.summary_["validation"]  # p_tau was chosen on held-out identities
    chosen = {name: getattr(model.rules_, name) for name in ("p_tau", "k")}
    assert any(all(chosen[name] == row[name] for name in chosen if name in row) for row in table)
    if method == "evidence":  # the peak of a curve through the tries
        tried = [row["p_tau_merge"] for row in table]
        assert min(tried) <= model.rules_.p_tau_merge <= max(tried)


def test_the_parts_of_a_model_are_read_only(model):
    for name in ("network_", "rules_", "preparation_", "history_", "summary_"):
        assert getattr(model, name) is getattr(model.model_, name.removesuffix("_"))
        with pytest.raises(AttributeError):
            setattr(model, name, None)


def test_cluster_returns_the_hierarchy_whose_last_level_predict_returns(model, unseen):
    found = model.cluster(unseen[0])
    assert isinstance(found, Hierarchy)
    np.testing.assert_array_equal(found.labels(-1), model.predict(unseen[0]))
    assert found.density.shape == (len(unseen[0]),)


def test_fit_predict_is_fit_and_then_its_labels(method, tiny):
    model = quick(method)
    np.testing.assert_array_equal(model.fit_predict(*tiny), model.labels_)


def test_points_of_unknown_identity_are_clustered_but_not_learned_from(method):
    X, y = make_identities(n_identities=8, size=8, dim=8, seed=0)
    unknown = np.arange(len(X)) % 5 == 0
    with pytest.warns(UserWarning, match="13 of 64 labels are -1"):
        partly = quick(method).fit(X, np.where(unknown, -1, y))
    known = quick(method).fit(X[~unknown], y[~unknown])
    assert same_weights(partly, known)
    assert partly.hierarchy_.n_points == len(partly.labels_) == 64
    np.testing.assert_array_equal(partly.labels_, known.predict(X))


@pytest.mark.parametrize("changes", [{"n_identities": 2, "size": 12}, {"n_identities": 3}])
def test_two_or_three_identities_are_enough_to_fit(method, changes, unseen):
    X, y = make_identities(**{"size": 8, "dim": 16, "seed": 0, **changes})
    model = quick(method, epochs=1).fit(X, y)
    assert model.summary_["validation"] == []
    assert len(model.predict(unseen[0])) == len(unseen[0])


@pytest.mark.parametrize("n_identities", [12, 20])
def test_well_separated_identities_with_negative_cosines_are_found(model, n_identities):
    X, y = make_identities(n_identities=n_identities, size=15, dim=16, spread=0.2, seed=3)
    assert bcubed_f(y, model.predict(X)) > 0.7


def test_labels_of_any_type_give_the_same_model(tiny):
    X, y = tiny
    plain = quick("paper").fit(X, y).labels_
    names = np.array(["ann", "bob", "cid", "dot", "eve", "fay"])[y]
    for labels in (names, names.tolist(), pandas.Series(names), y + 1000, torch.from_numpy(y)):
        np.testing.assert_array_equal(quick("paper").fit(X, labels).labels_, plain)


@pytest.mark.parametrize("features", ["identity", "average", "concat"])
@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_every_network_of_the_paper_learns(unseen, features, encoder):
    X, y = make_identities(n_identities=15, size=10, dim=16, spread=0.45, seed=0)
    shape = {"features": features, "encoder": encoder, "layers": 2, "heads": 2}
    learning = THOROUGH["paper"]["learning"]
    model = quick("paper", epochs=10, learning=learning, p_tau=0.5, **shape).fit(X, y)
    assert model.network_.settings.features == features
    assert model.rules_.search_average == (features == "average")
    assert model.history_[-1]["loss"] < 0.8 * model.history_[0]["loss"]
    assert 0 < model.score(*unseen) <= 1


def test_the_best_features_and_k_of_the_paper_are_found_if_tuned():
    X, y = make_identities(n_identities=30, size=8, dim=16, spread=0.45, seed=0)
    model = quick("paper", features="auto", tune_k=True).fit(X, y)
    table = model.summary_["validation"]
    assert {row["features"] for row in table} == {"identity", "average", "concat"}
    assert len({row["k"] for row in table}) > 1
    best = max(row["f"] for row in table)
    chosen = {"features": model.network_.settings.features, "k": model.rules_.k}
    assert best in [row["f"] for row in table if chosen.items() <= row.items()]


# Input of every kind.


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
        lambda X: torch.from_numpy(X).double().requires_grad_(),
        pandas.DataFrame,
        lambda X: pandas.Series(list(X)),
        lambda X: pyarrow.array(list(X)),
        lambda X: pyarrow.chunked_array([list(X[:5]), list(X[5:])]),
    ],
)
def test_the_same_numbers_in_any_container_give_the_same_clusters(model, unseen, convert):
    X = unseen[0][:60]
    np.testing.assert_array_equal(model.predict(convert(X)), model.predict(X))


def test_a_memory_map_is_read(model, unseen, tmp_path):
    np.save(tmp_path / "x.npy", unseen[0])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(model.predict(mapped), model.predict(unseen[0]))


@pytest.mark.parametrize("kind", [np.float16, np.int16])
def test_halves_and_integers_are_read_as_numbers(model, unseen, kind):
    X = (unseen[0] * 100).astype(kind)
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype(np.float32)))


def test_the_length_of_an_embedding_does_not_matter(model, unseen):
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(len(unseen[0]), 1))
    assert same_partition(model.predict(unseen[0] * lengths), model.predict(unseen[0]))


def test_embeddings_of_few_dimensions_give_a_warning():
    X, y = make_identities(n_identities=8, size=8, dim=3, seed=0)
    with pytest.warns(UserWarning, match="X has 3 features.*only the directions of embeddings"):
        narrow = quick("paper").fit(X, y)
    with pytest.warns(UserWarning, match="X has 3 features"):
        narrow.predict(X)
    X, y = make_identities(n_identities=8, size=8, dim=4, seed=0)
    quick("paper").fit(X, y)  # warnings are errors


def test_a_given_graph_takes_the_place_of_the_search(model, unseen):
    X, _ = unseen
    graph = build_knn_graph(model.preparation_.apply(X), model.rules_.k)
    np.testing.assert_array_equal(model.cluster(X, graph=graph).labels(), model.predict(X))
    narrower = build_knn_graph(model.preparation_.apply(X), 7)
    np.testing.assert_array_equal(
        model.cluster(X, graph=narrower).labels(), model.cluster(X, k=7).labels()
    )
    other = KnnGraph(np.array([[1], [0]]), np.ones((2, 1)))
    with pytest.raises(SettingError, match=r"graph has 2 nodes, X has 270 rows"):
        model.cluster(X, graph=other)


def test_a_given_threshold_takes_the_place_of_the_chosen_one(model, unseen):
    n_clusters = [model.cluster(unseen[0], p_tau=tau).n_clusters(0) for tau in (0.0, 0.5, 1.0)]
    assert n_clusters == sorted(n_clusters)
    assert n_clusters[0] < n_clusters[-1]


def test_equal_rows_by_the_hundred_are_in_one_cluster(model):
    distinct, _ = make_identities(n_identities=20, size=1, dim=16, seed=2)
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(20), [1000] + [50] * 19))
    labels = model.predict(distinct[y])
    assert len(np.unique(np.stack([labels, y]), axis=1).T) == 20  # no row is in two clusters
    assert labels.max() > 1


# Properties.


@pytest.mark.parametrize("spread", [0.35, 0.9])
def test_renumbering_the_input_renumbers_the_output(model, spread):
    X, _ = make_identities(n_identities=30, size=9, dim=16, spread=spread, seed=3)
    one = model.cluster(X)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(X))
        two = model.cluster(X[order])
        assert one.n_levels == two.n_levels
        for level in range(one.n_levels):
            assert same_partition(one.labels(level)[order], two.labels(level))


def test_levels_only_merge(method, model, unseen):
    eager = copy(model)
    if method == "evidence":  # merges by links are rare; here every two linked clusters merge
        loose = replace(model.rules_, p_tau=0.9, p_tau_merge=0.001)
        eager.model_ = replace(model.model_, rules=loose)
        tries = [eager.cluster(unseen[0])]
    else:
        tries = [eager.cluster(unseen[0], p_tau=p_tau) for p_tau in (0.5, 0.7, 0.8, 0.9, 0.95)]
    found = max(tries, key=lambda one: one.n_levels)
    assert found.n_levels > 1
    for lower, upper in pairwise(found.labels(level) for level in range(found.n_levels)):
        assert len(np.unique(np.stack([lower, upper]), axis=1).T) == lower.max() + 1


def test_every_parent_is_at_least_as_dense(model, unseen):
    found = model.cluster(unseen[0])
    for number, level in enumerate(found.levels):
        parent, linkage = found.parents(number)
        assert (level.density[parent] >= level.density).all()
        linked = parent != np.arange(level.n_nodes)
        if model.rules_.decoder == "parents":
            assert (linkage[linked] >= model.rules_.p_tau).all()


def test_the_same_seed_gives_the_same_model_on_one_thread_and_on_two(method, unseen):
    X, y = make_identities(n_identities=15, size=8, dim=16, spread=0.45, seed=0)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            model = quick(method, epochs=1).fit(X, y)
            found.append((model, model.cluster(unseen[0])))
    finally:
        torch.set_num_threads(before)
    (one, first), (two, second) = found
    assert same_weights(one, two)
    assert one.rules_ == two.rules_
    np.testing.assert_array_equal(first.labels(), second.labels())


def test_another_seed_gives_another_model(method, tiny):
    one, two = (quick(method, epochs=1, random_state=seed).fit(*tiny) for seed in (0, 1))
    assert not same_weights(one, two)


# Preparation.


def in_a_cone(seed):
    X, y = make_identities(n_identities=15, size=10, dim=16, spread=0.45, seed=seed)
    return X + 2 * np.ones(16, dtype=np.float32) / 4, y


def test_centring_is_learned_in_fit_stored_in_the_model_and_applied_in_predict(tmp_path):
    model = quick("paper").fit(*in_a_cone(0))
    assert model.preparation_.mean is not None
    trained_on = model.cluster(in_a_cone(0)[0])
    np.testing.assert_array_equal(model.hierarchy_.density, trained_on.density)
    np.testing.assert_array_equal(model.labels_, trained_on.labels())
    X, y = in_a_cone(1)
    again = HiLander.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.preparation_.mean, model.preparation_.mean)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # The training mean is subtracted, not that of the new points.
    half = X[y < 7]
    graph = build_knn_graph(model.preparation_.apply(half), 5)
    np.testing.assert_array_equal(model.cluster(half, graph=graph).labels(), model.predict(half))
    unit = half / np.linalg.norm(half, axis=1, keepdims=True) - model.preparation_.mean
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(model.preparation_.apply(half), unit, atol=1e-5)


def test_centring_can_be_forced_or_forbidden(method, tiny):
    assert quick(method, epochs=1, centre=False).fit(*in_a_cone(0)).preparation_.mean is None
    assert quick(method, epochs=1).fit(*tiny).preparation_.mean is None
    assert quick(method, epochs=1, centre=True).fit(*tiny).preparation_.mean is not None


# On disk.


def test_a_loaded_model_predicts_the_same_and_has_the_same_parts(model, unseen, tmp_path):
    again = HiLander.load(model.save(tmp_path / "model"), device="cpu")
    one, two = model.cluster(unseen[0]), again.cluster(unseen[0])
    assert one.n_levels == two.n_levels
    for level in range(one.n_levels):
        np.testing.assert_array_equal(one.labels(level), two.labels(level))
    np.testing.assert_array_equal(one.density, two.density)
    assert same_weights(model, again)
    for name in ("rules_", "history_", "summary_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name)
    assert again.get_params() == model.get_params()


def test_a_model_folder_is_safetensors_and_json(method, model, tmp_path):
    folder = model.save(tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == [
        "hilander.json", "history.json", "model.json", "weights.safetensors",
    ]  # fmt: skip
    description = json.loads((folder / "model.json").read_text())
    assert description["rules"]["p_tau"] == model.rules_.p_tau
    assert description["training"]["n_points"] == 320
    assert len(json.loads((folder / "history.json").read_text())) == len(model.history_)
    network = description["network"]
    assert network["hidden"] == 16
    if method == "evidence":
        assert network["prior"] == read_network(PRETRAINED).network.settings.to_dict()
        assert network["own_weight"] == model.summary_["own_weight"]


def test_an_interrupted_fit_continues_from_its_checkpoint(method, tiny, tmp_path, monkeypatch):
    settings = {"p_tau": 0.5, "epochs": 4}
    whole = quick(method, **settings).fit(*tiny)
    real, calls = loop.train_epoch, []

    def interrupt(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            quick(method, **settings).fit(*tiny, checkpoint=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir())
    resumed = quick(method, **settings).fit(*tiny, checkpoint=tmp_path / "kept")
    assert same_weights(whole, resumed)
    assert resumed.history_ == whole.history_
    np.testing.assert_array_equal(whole.labels_, resumed.labels_)
