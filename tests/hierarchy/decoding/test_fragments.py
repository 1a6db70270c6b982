import numpy as np
import pytest

from hilander.hierarchy.decoding.communities import WeightedEdges
from hilander.hierarchy.decoding.decode import find_communities
from hilander.hierarchy.decoding.fragments import (
    MOST_LEAVING,
    find_fragments,
    join_fragments,
    sum_between,
)
from hilander.knn.search import build_knn_graph


def make_edges(n_nodes, edges):
    low, high, weight = (np.array(column) for column in zip(*edges, strict=True))
    return WeightedEdges(n_nodes, low, high, weight.astype(float))


def test_weight_between_communities_is_summed_both_ways():
    edges = make_edges(4, [(0, 1, 2.0), (1, 2, 3.0), (2, 3, 5.0)])
    between = sum_between(edges, np.array([0, 0, 1, 1])).toarray()
    np.testing.assert_array_equal(between, [[4, 3], [3, 10]])


@pytest.mark.parametrize(("out", "joined"), [(2.9, False), (3.1, True)])
def test_a_community_is_a_fragment_when_more_than_its_share_leads_out(out, joined):
    # {0, 1} has 2 * 1 within and `out` to {2, 3}: .6 of it at 3.
    assert MOST_LEAVING == 0.6
    edges = make_edges(4, [(0, 1, 1.0), (1, 2, out), (2, 3, 9.0)])
    found = join_fragments(edges, np.array([0, 0, 1, 1]))
    assert (found[0] == found[2]) is np.bool_(joined)
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_a_fragment_joins_the_community_that_most_of_its_weight_leads_to():
    strong = [(2, 3, 9.0), (4, 5, 9.0)]
    edges = make_edges(6, [(0, 1, 0.1), (0, 2, 1.0), (1, 4, 1.5), *strong])
    found = join_fragments(edges, np.array([0, 0, 1, 1, 2, 2]))
    assert found[0] == found[4]
    assert found[0] != found[2]


def test_nodes_without_an_edge_stay_alone():
    edges = WeightedEdges(3, *(np.empty(0, dtype=np.int64),) * 2, np.empty(0))
    assert len(np.unique(join_fragments(edges, np.arange(3)))) == 3


@pytest.mark.parametrize("keep_fragments", [False, True])
def test_a_large_even_cluster_falls_into_a_few_parts_and_not_across_another(keep_fragments):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 400)
    centres = rng.normal(size=(2, 64))
    features = centres[labels] + 0.5 * rng.normal(size=(800, 64))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = build_knn_graph(features.astype(np.float32), 15)
    weights = np.ones(graph.neighbours.shape, dtype=np.float32)
    found = find_communities(graph, weights, "leiden", keep_fragments=keep_fragments)
    n_parts = len(np.unique(found))
    assert n_parts > 30 if keep_fragments else 2 <= n_parts <= 10
    assert len(np.unique(np.stack([found, labels]), axis=1).T) == n_parts


def test_rounds_of_joining_see_what_earlier_rounds_have_joined():
    rng = np.random.default_rng(0)
    low, high = np.divmod(rng.choice(40 * 40, 300, replace=False), 40)
    low, high = np.minimum(low, high)[low != high], np.maximum(low, high)[low != high]
    pairs = np.unique(low * 40 + high)
    edges = WeightedEdges(40, *np.divmod(pairs, 40), rng.random(len(pairs)))
    found = join_fragments(edges, np.arange(40))
    assert not len(find_fragments(sum_between(edges, found)))
    _, first = np.unique(found, return_index=True)
    assert np.all(np.diff(first) > 0)
