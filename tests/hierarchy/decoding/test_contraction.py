import numpy as np
import pytest

from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.decoding import contraction
from hilander.hierarchy.decoding.contraction import contract_edges


def graph_of(neighbours):
    neighbours = np.asarray(neighbours)
    return KnnGraph(neighbours, np.full(neighbours.shape, 0.5, dtype=np.float32))


def complete_graph(n_nodes):
    """Every node names all the others; gives the graph and a way to lay a matrix on its edges."""
    neighbours = np.array([np.delete(np.arange(n_nodes), node) for node in range(n_nodes)])
    rows = np.arange(n_nodes)[:, None]
    # Each undirected edge is named from both ends, so each names half of its weight.
    return graph_of(neighbours), lambda matrix: (matrix / 2)[rows, neighbours]


def random_edges(seed, n_nodes=24, k=6, lean=0.0):
    rng = np.random.default_rng(seed)
    others = [np.delete(np.arange(n_nodes), node) for node in range(n_nodes)]
    graph = graph_of(np.stack([rng.permutation(row)[:k] for row in others]))
    return graph, rng.normal(lean, 1, size=(n_nodes, k))


def sum_slowly(clusters, pair_weight):
    """Weight between every two clusters that have an edge, from the single edges."""
    total = {}
    for (a, b), weight in pair_weight.items():
        ends = frozenset((clusters[a], clusters[b]))
        if len(ends) == 2:
            total[ends] = total.get(ends, 0.0) + weight
    return total


def contract_slowly(graph, weights):
    """Contract, in rounds, the edges that are the heaviest of both ends, adding up from scratch."""
    pair_weight = {}
    for node in range(graph.n_nodes):
        for other, weight in zip(graph.neighbours[node], weights[node], strict=True):
            pair = (min(node, other), max(node, other))
            pair_weight[pair] = pair_weight.get(pair, 0.0) + weight
    clusters = list(range(graph.n_nodes))
    while True:
        total = sum_slowly(clusters, pair_weight)
        best = {}
        for ends, weight in total.items():
            for end in ends:
                best[end] = max(best.get(end, 0.0), weight)
        chosen = [e for e, w in total.items() if w > 0 and all(w == best[end] for end in e)]
        if not chosen:
            return np.array(clusters)
        for keep, gone in map(sorted, chosen):
            clusters = [keep if cluster == gone else cluster for cluster in clusters]


def contract_one_by_one(graph, weights):
    """Greedy additive edge contraction: always the heaviest edge of all."""
    pair_weight = {}
    for node in range(graph.n_nodes):
        for other, weight in zip(graph.neighbours[node], weights[node], strict=True):
            pair = (min(node, other), max(node, other))
            pair_weight[pair] = pair_weight.get(pair, 0.0) + weight
    clusters = list(range(graph.n_nodes))
    while total := sum_slowly(clusters, pair_weight):
        ends = max(total, key=total.get)
        if total[ends] <= 0:
            break
        keep, gone = sorted(ends)
        clusters = [keep if cluster == gone else cluster for cluster in clusters]
    return np.array(clusters)


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


@pytest.mark.parametrize("seed", range(30))
def test_edges_that_are_heaviest_of_both_ends_are_contracted_in_rounds(seed):
    graph, weights = random_edges(seed, lean=-0.6 + 0.05 * seed)
    found = contract_edges(graph, weights, dominant_share=1)
    assert same_partition(found, contract_slowly(graph, weights))


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(10))
def test_identities_with_some_wrong_edges_are_found_as_one_edge_at_a_time_finds_them(seed, share):
    rng = np.random.default_rng(seed)
    identity = np.repeat(np.arange(5), [2, 4, 6, 8, 10])
    same = identity[:, None] == identity
    noise = rng.normal(0, 1, size=same.shape)
    matrix = np.where(same, 4, -4) + noise + noise.T
    wrong = np.triu(rng.random(same.shape) < 0.02, 1)
    matrix[(wrong | wrong.T) & ~same] = 1.0 + rng.random()
    graph, lay = complete_graph(len(identity))
    found = contract_edges(graph, lay(matrix), share)
    assert same_partition(found, contract_one_by_one(graph, lay(matrix)))
    assert same_partition(found, identity)


def test_labels_are_numbered_by_first_appearance():
    graph, weights = random_edges(0, lean=-0.3)
    found = contract_edges(graph, weights)
    first = [found.tolist().index(label) for label in range(found.max() + 1)]
    assert first == sorted(first)
    assert 1 < len(first) < graph.n_nodes


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_strong_negative_edge_stops_one_wrong_link(share):
    graph, lay = complete_graph(3)
    wrong_link = np.array([[0, 9, -8], [9, 0, 4], [-8, 4, 0]], dtype=float)
    np.testing.assert_array_equal(contract_edges(graph, lay(wrong_link), share), [0, 0, 1])
    unopposed = np.where(wrong_link < 0, -1, wrong_link)
    np.testing.assert_array_equal(contract_edges(graph, lay(unopposed), share), [0, 0, 0])


@pytest.mark.parametrize(("share", "bridge"), [(0.5, 1.2), (1.0, 2.9)])
def test_two_cliques_with_one_bridge_stay_apart(share, bridge):
    identity = np.repeat([0, 1], 8)
    matrix = np.where(identity[:, None] == identity, 3.0, -0.5)
    matrix[7, 8] = matrix[8, 7] = bridge  # 63 edges of -0.5 say no
    matrix += np.random.default_rng(0).normal(0, 1e-3, size=matrix.shape)  # no ties
    graph, lay = complete_graph(16)
    assert same_partition(contract_edges(graph, lay(matrix), share), identity)
    without_no = np.where(matrix < 0, 0, matrix)
    assert len(np.unique(contract_edges(graph, lay(without_no), share))) == 1


def test_negative_edges_merge_nothing():
    graph, weights = random_edges(1)
    np.testing.assert_array_equal(contract_edges(graph, -np.abs(weights)), np.arange(24))
    np.testing.assert_array_equal(contract_edges(graph, 0 * weights), np.arange(24))


def test_positive_edges_merge_connected_components():
    neighbours = np.array(
        [(node + 1) % 6 if node < 6 else 6 + (node + 1) % 5 for node in range(11)]
    )
    found = contract_edges(graph_of(neighbours[:, None]), np.ones((11, 1)))
    assert same_partition(found, np.repeat([0, 1], [6, 5]))


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_renumbering_the_nodes_gives_the_same_partition(seed, share):
    graph, weights = random_edges(seed, n_nodes=60, lean=-0.2)
    order = np.random.default_rng(seed).permutation(60)
    place = np.argsort(order)
    moved = graph_of(place[graph.neighbours[order]])
    one, two = contract_edges(graph, weights, share), contract_edges(moved, weights[order], share)
    assert same_partition(one[order], two)
    assert 1 < one.max() + 1 < 60


def test_a_star_does_not_need_a_round_for_each_leaf(monkeypatch):
    n_leaves, rounds = 500, []
    real = contraction.find_dominant

    def count(*arguments):
        rounds.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(contraction, "find_dominant", count)
    star = graph_of(np.r_[1, np.zeros(n_leaves, dtype=np.int64)][:, None])
    weights = np.random.default_rng(0).uniform(0.1, 9, size=(n_leaves + 1, 1))
    np.testing.assert_array_equal(contract_edges(star, weights), 0)
    assert len(rounds) < 15


def test_parallel_edges_are_added_and_loops_dropped():
    left, right = np.array([0, 1, 2, 2, 0]), np.array([1, 0, 2, 1, 2])
    low, high, total = contraction.add_parallel(left, right, np.array([1.0, 2, 4, 8, 16]), 3)
    assert list(zip(low, high, total, strict=True)) == [(0, 1, 3), (0, 2, 16), (1, 2, 8)]
    nothing = np.arange(0)
    assert [len(part) for part in contraction.add_parallel(nothing, nothing, nothing, 3)] == [0] * 3


@pytest.mark.parametrize("seed", range(5))
def test_edges_named_from_both_ends_are_added_as_parallel_ones_are(seed):
    graph, weights = random_edges(seed)
    left = np.repeat(np.arange(graph.n_nodes), graph.k)
    expected = contraction.add_parallel(left, graph.neighbours.ravel(), weights.ravel(), 24)
    for found, wanted in zip(contraction.add_both_ways(graph, weights), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_cluster_without_a_positive_edge_is_settled():
    left, right = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 2, 3, 4])
    weight = np.array([2.0, -1, -5, -1, 0])
    kept = contraction.drop_settled(left, right, weight, 5)
    assert [part.tolist() for part in kept] == [[0], [1], [2.0]]
