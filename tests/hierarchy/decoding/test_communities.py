import importlib
import importlib.util
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding import communities
from hilander.hierarchy.decoding.communities import (
    WeightedEdges,
    cut_between_components,
    find_by_infomap,
    find_by_leiden,
    measure_modularity,
)
from hilander.hierarchy.decoding.decode import (
    check_decoder,
    choose_resolution,
    decode,
    find_communities,
)
from hilander.hierarchy.decoding.trees import label_trees

METHODS = [
    "leiden",
    pytest.param("infomap", marks=pytest.mark.skipif(
        importlib.util.find_spec("infomap") is None, reason="infomap is not installed")),
]  # fmt: skip


def planted(n_groups, size, k, seed, wrong=0.02, right=0.95):
    """Groups with many edges inside and some between, and their labels."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(n_groups), size))
    neighbours = np.empty((len(truth), k), dtype=np.int64)
    for node, group in enumerate(truth):
        own = np.setdiff1d(np.flatnonzero(truth == group), [node])
        others = np.flatnonzero(truth != group)
        inside = rng.choice(own, k - 2, replace=False)
        neighbours[node] = np.concatenate([inside, rng.choice(others, 2, replace=False)])
    same = truth[neighbours] == truth[:, None]
    linkage = np.where(same, right, wrong).astype(np.float32)
    affinity = np.full(linkage.shape, 0.5, dtype=np.float32)
    density = rng.uniform(size=len(truth)).astype(np.float32)
    return KnnGraph(neighbours, affinity), EdgeScores(linkage, density), truth, rng


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_groups", [3, 60])
def test_planted_groups_are_found_in_small_and_large_graphs(method, n_groups):
    graph, scores, truth, _ = planted(n_groups, 12, 8, seed=n_groups)
    labels, _ = label_trees(decode(graph, scores, 0.5, method).index)
    assert same_partition(labels, truth)


@pytest.mark.parametrize("method", METHODS)
def test_one_wrong_link_does_not_join_two_groups_however_large_the_graph(method):
    graph, scores, truth, _ = planted(80, 10, 8, seed=5)
    linkage = scores.linkage.copy()
    for group in range(80):  # one sure but wrong edge out of every group
        node = np.flatnonzero(truth == group)[0]
        linkage[node, -1] = 0.95
    labels = label_trees(decode(graph, EdgeScores(linkage, scores.density), 0.5, method).index)[0]
    assert same_partition(labels, truth)


@pytest.mark.parametrize("method", METHODS)
def test_edges_below_the_threshold_join_nothing(method):
    graph, scores, truth, _ = planted(4, 10, 8, seed=1)
    peaks = label_trees(decode(graph, scores, 0.96, method).index)[1]
    assert len(peaks) == len(truth)


@pytest.mark.parametrize("method", METHODS)
def test_the_same_graph_gives_the_same_communities(method):
    graph, scores, _, rng = planted(20, 10, 8, seed=2, wrong=0.5)
    weights = (scores.linkage + rng.uniform(-0.4, 0.1, scores.linkage.shape)).astype(np.float32)
    first = find_communities(graph, weights, method)
    for _ in range(3):
        np.testing.assert_array_equal(find_communities(graph, weights, method), first)
    assert set(first) == set(range(first.max() + 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_node_without_an_edge_is_alone(method):
    edges = WeightedEdges(5, np.array([0, 0, 1]), np.array([1, 2, 2]), np.ones(3))
    find = {"leiden": lambda e: find_by_leiden(e, 1.0), "infomap": find_by_infomap}[method]
    labels = find(edges)
    assert same_partition(labels, [0, 0, 0, 1, 2])
    nothing = WeightedEdges(3, *(np.array([], dtype=np.int64),) * 2, np.array([]))
    assert same_partition(find(nothing), [0, 1, 2])


def test_an_edge_that_is_there_both_ways_is_taken_once_with_the_larger_weight():
    neighbours = np.array([[1, 2], [0, 2], [0, 1]])
    weights = np.array([[0.5, 0.2], [0.7, 0.0], [0.1, -1.0]], dtype=np.float32)
    edges = WeightedEdges.of_matrix(neighbours, weights)
    assert list(zip(edges.low, edges.high, strict=True)) == [(0, 1), (0, 2)]
    np.testing.assert_allclose(edges.weight, [0.7, 0.2], rtol=1e-6)
    np.testing.assert_allclose(edges.strength, [0.9, 0.7, 0.2], rtol=1e-6)


def test_the_resolution_grows_with_the_graph_and_not_with_the_scale_of_the_weights():
    def of(n_groups, scale=1.0):
        graph, scores, *_ = planted(n_groups, 10, 8, seed=0)
        weights = np.where(scores.linkage > 0.5, scale, 0).astype(np.float32)
        return choose_resolution(WeightedEdges.of_matrix(graph.neighbours, weights))

    assert of(40) == pytest.approx(4 * of(10), rel=0.1)
    assert of(10, scale=7.0) == pytest.approx(of(10))


@pytest.mark.parametrize(
    ("decoder", "module", "package"),
    [("leiden", "networkit", "networkit"), ("infomap", "infomap", r"'hilander\[infomap\]'")],
)
def test_a_missing_library_is_named_with_what_installs_it(decoder, module, package, monkeypatch):
    real = importlib.import_module

    def refuse(name, *rest):
        if name == module:
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(SettingError, match=rf"{module}.*pip install {package}$"):
        check_decoder(decoder)
    graph, scores, *_ = planted(3, 10, 8, seed=0)
    with pytest.raises(SettingError, match=rf"pip install {package}$"):
        decode(graph, scores, 0.5, decoder)
    check_decoder("contract")


def many_groups(n_groups, seed=0):
    """Groups of 6 to 12 nodes, every second joined to the next by a weak edge."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 13, n_groups)
    starts = np.cumsum(sizes) - sizes
    ends, weight = [], []
    for group, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        inside = np.stack(np.triu_indices(size, 1)) + start
        ends.append(inside)
        weight.append(np.full(inside.shape[1], 1.0))
        if group % 2 and group + 1 < n_groups:
            ends.append(np.array([[start], [starts[group + 1]]]))
            weight.append(np.array([0.3]))
    name = rng.permutation(int(sizes.sum()))  # so that a part is not a run of nodes
    low, high = np.sort(name[np.hstack(ends)], axis=0)
    truth = np.empty(len(name), dtype=np.int64)
    truth[name] = np.repeat(np.arange(n_groups), sizes)
    return WeightedEdges(len(name), low, high, np.concatenate(weight)), truth


def test_a_graph_is_cut_between_its_components_and_nothing_is_lost():
    edges, _ = many_groups(40)
    parts = list(cut_between_components(edges, 50))
    assert len(parts) > 4
    assert max(part.n_nodes for _, part in parts) < 50 + 2 * 12
    np.testing.assert_array_equal(
        np.sort(np.concatenate([nodes for nodes, _ in parts])), np.arange(edges.n_nodes)
    )
    seen = {
        (nodes[low], nodes[high], weight)
        for nodes, part in parts
        for low, high, weight in zip(part.low, part.high, part.weight, strict=True)
    }
    assert seen == set(zip(edges.low, edges.high, edges.weight, strict=True))


def test_a_component_larger_than_a_part_stays_whole():
    path = np.arange(99)
    edges = WeightedEdges(110, path, path + 1, np.ones(99))
    sizes = [part.n_nodes for _, part in cut_between_components(edges, 10)]
    assert max(sizes) >= 100
    assert sum(sizes) == 110


def test_communities_found_in_parts_are_those_of_the_whole(monkeypatch):
    edges, truth = many_groups(60)
    resolution = choose_resolution(edges)
    whole = find_by_leiden(edges, resolution)
    monkeypatch.setattr(communities, "_PART", 100)
    in_parts = find_by_leiden(edges, resolution)
    assert same_partition(whole, truth)
    assert same_partition(in_parts, truth)
    np.testing.assert_array_equal(find_by_leiden(edges, resolution), in_parts)


def test_a_large_graph_without_edges_gives_nodes_alone(monkeypatch):
    monkeypatch.setattr(communities, "_PART", 4)
    nothing = WeightedEdges(11, *(np.array([], dtype=np.int64),) * 2, np.array([]))
    assert same_partition(find_by_leiden(nothing, 1.0), np.arange(11))


def test_threads_that_find_communities_at_once_do_not_disturb_each_other():
    rng = np.random.default_rng(0)
    ends = rng.integers(400, size=(2, 4000))
    pairs = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
    low, high = np.ascontiguousarray(pairs)
    edges = WeightedEdges(400, low, high, rng.random(len(low)))
    alone = find_by_leiden(edges, 1.0)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: find_by_leiden(edges, 1.0), range(40)):
            np.testing.assert_array_equal(found, alone)


def test_the_best_of_several_starts_is_taken(monkeypatch):
    rng = np.random.default_rng(0)
    weights = rng.random((300, 6)).astype(np.float32)  # no community is better than the others
    edges = WeightedEdges.of_matrix(rng.integers(300, size=(300, 6)), weights)
    resolution = choose_resolution(edges)
    best = measure_modularity(edges, find_by_leiden(edges, resolution), resolution)
    monkeypatch.setattr(communities, "_STARTS", 1)
    alone = [
        measure_modularity(edges, find_by_leiden(edges, resolution, seed), resolution)
        for seed in range(4)
    ]
    assert len(set(alone)) > 1
    assert best == max(alone)


def test_modularity_is_that_of_the_textbook():
    ends = np.array([[0, 1], [1, 2], [0, 2], [3, 4], [2, 3]])
    edges = WeightedEdges(5, *ends.T, np.ones(5))
    labels = np.array([0, 0, 0, 1, 1])
    assert measure_modularity(edges, labels, 1.0) == pytest.approx(4 / 5 - 0.49 - 0.09)


def test_equal_weights_are_perturbed_so_that_leiden_ends(monkeypatch):
    networkit = importlib.import_module("networkit")
    given, build = [], networkit.GraphFromCoo

    def watch(edges, **rest):
        given.append(edges[0])
        return build(edges, **rest)

    monkeypatch.setattr(networkit, "GraphFromCoo", watch)
    ends = np.arange(99)
    find_by_leiden(WeightedEdges(100, ends, ends + 1, np.full(99, 10.3)), 1.0)
    weights = given[0]
    assert len(np.unique(weights)) == 99
    np.testing.assert_allclose(weights, 10.3, rtol=1e-8)
