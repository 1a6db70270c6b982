import numpy as np
import pytest

from hilander.comparison.objective import mean_f
from hilander.comparison.protocol import (
    BUDGET,
    hold_out,
    make_graph,
    next_between,
    tune_method,
)
from hilander.comparison.rival import Axis, Problem, Rival, noise_to_singletons
from hilander.comparison.rivals.registry import RIVALS
from hilander.errors import LabelError, SettingError
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.synthetic.identities import make_identities


@pytest.fixture
def problem_and_labels() -> tuple[Problem, np.ndarray]:
    features, labels = make_identities(n_identities=20, size=10, spread=0.5, seed=0)
    return Problem(features, make_graph(features, 15)), labels


def blocks_of(size: float, n_points: int) -> np.ndarray:
    return (np.arange(n_points) / size).astype(np.int64)


def test_noise_becomes_singletons() -> None:
    found = noise_to_singletons(np.array([5, -1, 5, -1, 2]))
    np.testing.assert_array_equal(found, [1, 2, 1, 3, 0])
    np.testing.assert_array_equal(noise_to_singletons(np.array([-1, -1])), [0, 1])


def test_the_objective_is_the_mean_of_the_two_f_scores() -> None:
    rng = np.random.default_rng(0)
    true, found = rng.integers(6, size=(2, 80))
    expected = (pairwise_f(true, found) + bcubed_f(true, found)) / 2
    assert mean_f(true, found) == pytest.approx(expected)
    assert mean_f(np.arange(4), np.arange(4)) == 1


def test_the_objective_seen_from_some_points_counts_points_of_others_in_their_clusters() -> None:
    true, found = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])
    seen = np.array([True, True, False, False])
    # precision 2/3, recall 1; pairs of each end: 1 right of 2 joined, 1 belonging
    bcubed = 2 * (2 / 3) / (2 / 3 + 1)
    assert mean_f(true, found, seen) == pytest.approx((bcubed + 2 * 2 / 6) / 2)


def test_tuning_finds_the_best_value_between_those_listed(problem_and_labels) -> None:
    problem, _ = problem_and_labels
    labels = blocks_of(10, 200)
    method = Rival(
        "blocks",
        "paper",
        cluster=lambda problem, state, params: blocks_of(params["size"], len(problem.features)),
        axes=(Axis("size", (2.0, 7.0, 30.0), refine=True),),
    )
    tuned = tune_method(method, problem, labels)
    assert tuned.params["size"] == pytest.approx(10, abs=0.2)
    assert len(tuned.tried) <= BUDGET
    assert tuned.objective == max(row["objective"] for row in tuned.tried)


def test_every_method_stays_within_the_budget() -> None:
    for method in RIVALS.values():
        assert 0 < len(method.settings()) <= BUDGET, method.name


def test_whole_numbers_stay_whole_when_refined() -> None:
    axes = (Axis("size", (2, 9), refine=True), Axis("kind", ("a", "b")))
    scores = [
        ({"size": 2, "kind": "a"}, 0.1),
        ({"size": 9, "kind": "a"}, 0.5),
        ({"size": 9, "kind": "b"}, 0.4),
    ]
    assert next_between(axes, scores) == {"size": 6, "kind": "a"}
    assert next_between((Axis("size", (2, 3), refine=True),), [({"size": 2}, 0.1)]) is None


def test_shared_work_is_done_once_for_each_setting_it_depends_on(problem_and_labels) -> None:
    problem, labels = problem_and_labels
    started = []

    def start(problem, fitted, params):
        started.append(params["k"])
        return params["k"]

    method = Rival(
        "counting",
        "paper",
        cluster=lambda problem, state, params: blocks_of(params["size"], len(problem.features)),
        axes=(Axis("k", (5, 10)), Axis("size", (2.0, 5.0, 20.0))),
        start=start,
        started_by=("k",),
    )
    tune_method(method, problem, labels)
    assert started == [5, 10]


def test_a_method_that_learns_never_sees_the_identities_it_is_judged_on(
    problem_and_labels,
) -> None:
    problem, labels = problem_and_labels
    learnt: list[np.ndarray] = []

    def fit(problem, labels, params):
        learnt.append(problem.features)
        assert len(labels) == len(problem.features)

    method = Rival(
        "learner",
        "paper",
        cluster=lambda problem, state, params: blocks_of(params["size"], len(problem.features)),
        axes=(Axis("size", (2.0, 5.0)),),
        fit=fit,
        needs_labels=True,
    )
    tune_method(method, problem, labels)
    held = hold_out(labels)
    assert len(np.unique(labels[held])) == 4
    assert len(learnt) == 1
    np.testing.assert_array_equal(learnt[0], problem.features[~held])


def test_labels_of_another_length_are_refused(problem_and_labels) -> None:
    problem, labels = problem_and_labels
    with pytest.raises(LabelError, match="199 labels for 200"):
        tune_method(RIVALS["FINCH"], problem, labels[:-1])


def test_a_missing_library_says_what_installs_it() -> None:
    method = Rival(
        "absent", "today", cluster=lambda *_: np.zeros(1), requires=(("no_such_module", "rivals"),)
    )
    with pytest.raises(SettingError, match=r"hilander\[rivals\]"):
        method.check_installed()
