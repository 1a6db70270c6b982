"""Plans and preparation of the two methods, and their registry."""

import numpy as np
import pytest

from hilander import HiLander
from hilander.errors import SettingError
from hilander.hierarchy.rules import FEWEST_K, fit_k, resolve_rules
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.training import LearningSettings
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import method as evidence_method
from hilander.training.evidence.method import DEFAULT_K, DEFAULT_LEARNED_MERGE
from hilander.training.evidence.method import FEWEST_K as FEWEST_K_TO_LEARN
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.map_choice import ChosenMap
from hilander.training.methods import METHODS, find_method
from hilander.training.paper.plan import PaperPlan
from hilander.training.train import train_model

LEARNING = {"evidence": EvidenceLearning, "paper": LearningSettings}


def make_plan(estimator, X, y):
    return find_method(estimator.method).plan(estimator, X, y)


def prepare(estimator, X, y):
    method = find_method(estimator.method)
    return method.prepare(estimator, X, y, method.plan(estimator, X, y))


def with_nuisance(seed=0):
    """Identities whose members differ most along three directions."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(40), 8)
    noise = rng.normal(size=(len(labels), 16)) * ([3.5] * 3 + [0.4] * 13)
    return (rng.normal(size=(40, 16))[labels] + noise).astype(np.float32), labels


# Plans.


def test_methods_are_found_by_name():
    for name, method in METHODS.items():
        assert find_method(name) is method
        assert method.name == name
    with pytest.raises(SettingError, match="method='evidance' is not known; did you mean"):
        find_method("evidance")


def test_parameters_of_one_method_have_the_defaults_of_the_estimator():
    defaults = HiLander().get_params()
    for method in METHODS.values():
        assert method.only_parameters.items() <= defaults.items()


def test_the_default_is_evidence_with_communities_and_merges_by_links(labelled):
    plan = make_plan(HiLander(), *labelled)
    assert isinstance(plan, EvidencePlan)
    assert plan.rules.decoder == "leiden"
    assert plan.rules.keep_links
    assert plan.rules.p_tau_merge == DEFAULT_LEARNED_MERGE
    assert plan.rules.search_average
    assert plan.tune == ("p_tau",)
    fixed = make_plan(HiLander(p_tau=0.7, k=4), *labelled)
    assert (fixed.rules.p_tau, fixed.rules.k, fixed.tune) == (0.7, 4, ())


def test_the_published_method_is_planned_as_published(labelled):
    plan = make_plan(HiLander(method="paper"), *labelled)
    assert isinstance(plan, PaperPlan)
    assert (plan.rules.k, plan.network.hidden, plan.network.dim) == (10, 512, 16)
    assert (plan.rules.decoder, plan.rules.keep_links) == ("parents", False)
    assert (plan.rules.p_tau_merge, plan.rules.search_average) == (None, False)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_epochs_replace_those_of_the_learning_settings(method, labelled):
    given = LEARNING[method](epochs=5, batch_size=7)
    plan = make_plan(HiLander(method=method, epochs=7, learning=given), *labelled)
    assert (plan.learning.epochs, plan.learning.batch_size) == (7, 7)
    assert make_plan(HiLander(method=method, learning=given), *labelled).learning == given


@pytest.mark.parametrize("method", sorted(METHODS))
def test_learning_settings_of_another_method_are_refused(method, labelled):
    (other,) = set(LEARNING) - {method}
    message = f"{LEARNING[other].__name__}, .*needs {LEARNING[method].__name__}"
    with pytest.raises(SettingError, match=message):
        make_plan(HiLander(method=method, learning=LEARNING[other]()), *labelled)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_learning_settings_are_rebuilt_from_plain_values_and_from_options(method):
    from dataclasses import asdict

    given = LEARNING[method](epochs=5, batch_size=7)
    assert METHODS[method].learning_settings(asdict(given)) == given
    options = METHODS[method].learning_from_options({"epochs": 5, "batch_size": 7})
    assert (options.epochs, options.batch_size) == (5, 7)


def test_k_does_not_depend_on_the_size_of_the_identities():
    for size in (3, 200):
        labels = np.repeat(np.arange(30), size)
        points = np.eye(len(labels), 4, dtype=np.float32)
        assert make_plan(HiLander(), points, labels).rules.k == DEFAULT_K == 15


def test_k_is_lower_for_few_points_but_at_least_three_or_ten_to_learn_from():
    assert [fit_k(15, n) for n in (1000, 15, 5)] == [15, 14, 4]
    assert fit_k(15, 3) == FEWEST_K == 3  # refused later, with advice
    assert [fit_k(15, n, FEWEST_K_TO_LEARN) for n in (12, 11, 5)] == [11, 10, 10]
    assert fit_k(4, 5) == 4
    few = make_plan(HiLander(), np.eye(12, 4, dtype=np.float32), np.repeat(np.arange(4), 3))
    assert few.rules.k == 11


def test_merges_have_at_least_a_given_threshold(labelled):
    rules = make_plan(HiLander(), *labelled).rules
    n_points = len(labelled[0])
    assert resolve_rules(rules, n_points).p_tau_merge == rules.p_tau_merge
    assert resolve_rules(rules, n_points, p_tau=0.99).p_tau_merge == 0.99


def test_the_scorer_of_the_default_method_uses_the_cosine_between_identities(labelled):
    method = find_method("evidence")
    assert isinstance(method.make_scorer(None, make_plan(HiLander(), *labelled).rules, "cpu"),
                      EvidenceScorer)  # fmt: skip


# Preparation.


def test_whitening_is_used_if_it_helps_and_can_be_forced_or_forbidden(labelled):
    def has_map(estimator, data):
        return prepare(estimator, *data).transform is not None

    assert has_map(HiLander(k=7), with_nuisance())
    assert not has_map(HiLander(k=7, whiten=False), with_nuisance())
    assert not has_map(HiLander(method="paper", k=7), with_nuisance())
    assert not has_map(HiLander(k=7), labelled)
    assert has_map(HiLander(k=7, whiten=True), labelled)
    assert has_map(HiLander(method="paper", k=7, whiten=True), labelled)


def quick(**changes):
    learning = EvidenceLearning(epochs=1, batch_size=64, most_points=60)
    return HiLander(**{"hidden": 8, "learning": learning, "p_tau": 0.5, "device": "cpu", **changes})


@pytest.mark.usefixtures("small_steps")
def test_whitening_is_stored_and_applied(tmp_path):
    model = quick(epochs=4).fit(*with_nuisance())
    assert model.preparation_.transform is not None
    again = HiLander.load(model.save(tmp_path / "model"), device="cpu")
    np.testing.assert_array_equal(again.preparation_.transform, model.preparation_.transform)
    X, y = with_nuisance(1)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    plain = quick(epochs=4, whiten=False).fit(*with_nuisance())
    assert model.score(X, y) > plain.score(X, y)


class Recorder:
    """A method that records the features it learns from."""

    def __init__(self, method):
        self.method, self.features = method, None

    def __getattr__(self, name):
        return getattr(self.method, name)

    def learn(self, features, *rest, **options):
        self.features = features
        return self.method.learn(features, *rest, **options)


@pytest.mark.usefixtures("small_steps")
def test_training_points_are_prepared_by_the_weaker_map(monkeypatch):
    X, y = with_nuisance()
    recorder = Recorder(METHODS["evidence"])
    monkeypatch.setitem(METHODS, "evidence", recorder)
    preparation = train_model(quick(), X, y).preparation
    assert np.abs(preparation.training_transform - preparation.transform).max() > 0.01
    np.testing.assert_array_equal(recorder.features, preparation.apply_to_training_set(X))


@pytest.mark.usefixtures("small_steps")
def test_a_learned_metric_is_stored_as_one(tmp_path, monkeypatch):
    chosen = ChosenMap(np.diag(np.arange(1, 17.0)), np.eye(16), is_metric=True)
    monkeypatch.setattr(evidence_method, "choose_map", lambda *_: chosen)
    model = quick().fit(*with_nuisance())
    again = HiLander.load(model.save(tmp_path / "model"), device="cpu")
    assert again.preparation_.is_metric
    assert "metric" in again.preparation_.describe()
    X = with_nuisance(1)[0]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.usefixtures("small_steps")
def test_identities_of_equal_points_alone_can_be_whitened():
    distinct = make_identities(n_identities=20, size=1, dim=8, seed=0)[0]
    y = np.repeat(np.arange(20), 4)
    assert quick(whiten=True).fit(distinct[y], y).labels_.shape == (80,)


# The decoder.


@pytest.mark.parametrize(("method", "auto"), [("evidence", "leiden"), ("paper", "parents")])
def test_auto_is_the_decoder_of_the_method_and_a_choice_is_kept(method, auto, labelled):
    for asked, expected in (("auto", auto), ("parents", "parents"), ("contract", "contract")):
        plan = make_plan(HiLander(method=method, decoder=asked), *labelled)
        assert plan.rules.decoder == expected
