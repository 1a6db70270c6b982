"""Permuted rows give the permuted result, exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilander import HiLander
from hilander.embeddings.canonical_order import use_canonical_order
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.original_order import reorder_graph
from hilander.hierarchy.work import KeptWork
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities
from hilander.training import inference

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"
MODELS = ("pretrained", "model-default", "model-paper", "model-whitened")


def load(name):
    return HiLander.pretrained() if name == "pretrained" else HiLander.load(FIXTURES / name)


@pytest.fixture(scope="module")
def points():
    """Overlapping identities, so that the result is not the only one that could be found."""
    return make_identities(n_identities=50, size=8, dim=16, spread=1.1, seed=3)[0]


@pytest.fixture(scope="module")
def permutation(points):
    return np.random.default_rng(7).permutation(len(points))


def assert_permuted(hierarchy, permuted, permutation):
    """The second is the first with its points permuted, down to the numbers of the clusters."""
    back = np.argsort(permutation)
    assert permuted.n_levels == hierarchy.n_levels
    for level in range(hierarchy.n_levels):
        labels = hierarchy.labels(level)
        np.testing.assert_array_equal(permuted.labels(level), labels[permutation])
        np.testing.assert_array_equal(permuted.peaks(level), back[hierarchy.peaks(level)])
    first, second = hierarchy.levels[0], permuted.levels[0]
    np.testing.assert_array_equal(second.parent, back[first.parent[permutation]])
    np.testing.assert_array_equal(second.linkage, first.linkage[permutation])
    np.testing.assert_array_equal(second.density, first.density[permutation])
    for one, other in zip(hierarchy.levels[1:], permuted.levels[1:], strict=True):
        np.testing.assert_array_equal(one.parent, other.parent)
        np.testing.assert_array_equal(one.linkage, other.linkage)


@pytest.mark.parametrize("name", MODELS)
def test_permuted_rows_give_the_permuted_hierarchy(name, points, permutation):
    model = load(name)
    whole = model.cluster(points)
    assert 1 < whole.n_clusters() < len(points)
    assert_permuted(whole, model.cluster(points[permutation]), permutation)


@pytest.mark.parametrize("decoder", ["parents", "contract", "leiden"])
def test_the_decoder_does_not_matter(decoder, points, permutation):
    model = load("model-default")
    whole = model.cluster(points, decoder=decoder)
    assert_permuted(whole, model.cluster(points[permutation], decoder=decoder), permutation)


@pytest.mark.parametrize("memory", ["640MB", "700MB"])
def test_a_limit_of_memory_does_not_matter(memory, points, permutation):
    model = load("pretrained")
    whole = model.cluster(points, memory=memory)
    assert_permuted(whole, model.cluster(points[permutation], memory=memory), permutation)


def test_a_graph_of_the_user_is_permuted_with_the_points(points, permutation):
    model = load("model-default")
    graph = build_knn_graph(points / np.linalg.norm(points, axis=1, keepdims=True), 9)
    whole = model.cluster(points, graph=graph)
    permuted = model.cluster(points[permutation], graph=reorder_graph(graph, permutation))
    assert_permuted(whole, permuted, permutation)


def test_the_graph_is_given_back_in_the_order_of_the_points(points):
    model = load("model-default")
    step = next(iter(model.walk(points)))
    unit = model.preparation_.apply(points)
    np.testing.assert_array_equal(step.nodes.identity[:], unit)
    np.testing.assert_array_equal(step.nodes.identity[np.array([5, 1])], unit[[5, 1]])
    expected = build_knn_graph(unit, step.graph.k)
    np.testing.assert_array_equal(step.graph.neighbours, expected.neighbours)
    np.testing.assert_allclose(step.graph.affinity, expected.affinity, atol=1e-6)


def test_work_that_is_kept_gives_the_result_in_the_order_of_the_points(points, tmp_path):
    model = load("model-default")
    whole = [step.labels for step in model.walk(points)]
    for _ in range(2):  # computed, then read
        kept = model.walk(points, work=KeptWork(tmp_path / "work", {"a": 1}))
        for one, other in zip(whole, [step.labels for step in kept], strict=True):
            np.testing.assert_array_equal(one, other)


def test_repeated_rows_are_in_the_cluster_of_their_copies_in_any_order(points):
    model = load("pretrained")
    rows = np.concatenate([points, points[:100], points[:20]])
    whole = model.predict(rows)
    np.testing.assert_array_equal(whole[400:500], whole[:100])
    permutation = np.random.default_rng(2).permutation(len(rows))
    np.testing.assert_array_equal(model.predict(rows[permutation]), whole[permutation])


def test_the_peaks_of_later_levels_are_rows_of_the_input(points):
    model = load("model-paper")
    model.model_ = replace(model.model_, rules=replace(model.rules_, p_tau=0.2))
    steps = list(model.walk(points))
    assert len(steps) > 1
    np.testing.assert_array_equal(steps[1].nodes.point, steps[0].peaks)


def test_a_graph_that_is_reordered_twice_is_the_same(points, permutation):
    graph = build_knn_graph(points / np.linalg.norm(points, axis=1, keepdims=True), 5)
    again = reorder_graph(reorder_graph(graph, permutation), np.argsort(permutation))
    assert isinstance(again, KnnGraph)
    np.testing.assert_array_equal(again.neighbours, graph.neighbours)
    np.testing.assert_array_equal(again.affinity, graph.affinity)


def test_a_large_set_is_sorted_by_neighbours_after_its_canonical_order(
    points, permutation, monkeypatch
):
    monkeypatch.setattr(inference, "LOCAL_ORDER_FROM", 100)
    model = load("pretrained")
    whole = model.cluster(points)
    assert_permuted(whole, model.cluster(points[permutation]), permutation)


def test_constraints_are_those_of_the_given_rows(points, permutation):
    model, place = load("pretrained"), np.argsort(permutation)
    pairs = {"must_link": [(3, 350)], "cannot_link": [(0, 1), (8, 9)]}
    moved = {name: place[np.array(some)].tolist() for name, some in pairs.items()}
    whole = model.cluster(points, **pairs)
    assert_permuted(whole, model.cluster(points[permutation], **moved), permutation)
    assert whole.labels()[3] == whole.labels()[350]


def test_the_setting_of_the_first_version_warns_and_changes_nothing(points):
    model = load("model-default")
    with pytest.warns(DeprecationWarning, match="always"), use_canonical_order():
        labels = model.predict(points)
    np.testing.assert_array_equal(labels, model.predict(points))
