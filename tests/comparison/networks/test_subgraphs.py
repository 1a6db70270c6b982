import numpy as np
import torch

from hilander.comparison.networks.gcn_e import build_candidate_subgraphs
from hilander.comparison.networks.gcn_v import reflect_axes, vertex_confidence
from hilander.comparison.networks.l_gcn import PivotShape, build_pivot_subgraphs
from hilander.comparison.networks.subgraphs import (
    SubgraphNetwork,
    connect_nodes,
    linkage_loss,
    make_subgraph_inputs,
)
from hilander.graph.knn_graph import KnnGraph
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities

GRAPH = KnnGraph(
    np.array([[1, 2], [0, 3], [0, 1], [4, 1], [3, 5], [4, 3]]),
    np.array([[0.9, 0.8], [0.9, 0.7], [0.8, 0.6], [0.7, 0.5], [0.7, 0.4], [0.4, 0.2]], np.float32),
)


def test_confidence_is_the_signed_mean_of_affinities() -> None:
    labels = np.array([0, 0, 1, 1, 1, 0])
    expected = [(0.9 - 0.8) / 2, (0.9 - 0.7) / 2, (-0.8 - 0.6) / 2]
    np.testing.assert_allclose(vertex_confidence(GRAPH, labels)[:3], expected, atol=1e-6)


def test_a_pivot_subgraph_has_both_hops_once_and_not_the_pivot() -> None:
    shape = PivotShape(first=2, second=2, near=1, most=10)
    graphs = build_pivot_subgraphs(GRAPH, np.array([0, 3]), shape)
    nodes = [row[real].tolist() for row, real in zip(graphs.nodes, graphs.real, strict=True)]
    assert nodes[0] == [1, 2, 3]  # hop 1: 1, 2; hop 2 of them: 0 (pivot), 3 and 0, 1
    assert nodes[1] == [4, 1, 5, 0]  # hop 1: 4, 1; hop 2 of them: 3 (pivot), 5 and 0, 3
    assert (
        graphs.nodes[~graphs.real] == np.broadcast_to([[0], [3]], graphs.nodes.shape)[~graphs.real]
    ).all()


def test_a_subgraph_that_is_too_large_keeps_the_first_hop() -> None:
    shape = PivotShape(first=2, second=2, near=1, most=3)
    graphs = build_pivot_subgraphs(GRAPH, np.array([3]), shape)
    assert graphs.nodes[0].tolist() == [4, 1, 5]


def test_nodes_are_joined_where_one_is_near_the_other() -> None:
    nodes, real = np.array([[1, 2, 3]]), np.ones((1, 3), dtype=bool)
    # nearest: 1 -> 0 (outside), 2 -> 0 (outside), 3 -> 4 (outside); second: 1 -> 3, 2 -> 1, 3 -> 1
    assert not connect_nodes(nodes, real, GRAPH.neighbours[:, :1]).any()
    joined = connect_nodes(nodes, real, GRAPH.neighbours)
    np.testing.assert_allclose(joined[0], [[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])


def test_padding_is_joined_to_nothing() -> None:
    nodes, real = np.array([[1, 3, 0, 0]]), np.array([[True, True, False, False]])
    joined = connect_nodes(nodes, real, GRAPH.neighbours)
    np.testing.assert_allclose(joined[0, :2, :2], [[0, 1], [1, 0]])
    assert joined[0, 2:].sum() == joined[0, :, 2:].sum() == 0


def test_candidates_are_the_neighbours_of_higher_confidence() -> None:
    confidence = np.array([0.1, 0.5, 0.05, 0.9, 0.2, 0.3], dtype=np.float32)
    graphs = build_candidate_subgraphs(GRAPH, confidence, np.arange(6))
    expected = confidence[GRAPH.neighbours] > confidence[:, None]
    np.testing.assert_array_equal(graphs.real, expected)
    np.testing.assert_array_equal(graphs.nodes[graphs.real], GRAPH.neighbours[expected])


def test_the_network_sees_differences_to_the_pivot() -> None:
    features, _ = make_identities(n_identities=2, size=3, dim=5, seed=0)
    graphs = build_pivot_subgraphs(
        build_knn_graph(features, 2), np.array([4]), PivotShape(2, 1, 1, 4)
    )
    shown, _ = make_subgraph_inputs(features, graphs)
    np.testing.assert_allclose(shown[0, 0], features[graphs.nodes[0, 0]] - features[4])


def test_the_order_of_nodes_does_not_matter_to_the_network() -> None:
    torch.manual_seed(0)
    network = SubgraphNetwork(4).eval()
    x, adjacency = torch.randn(1, 5, 4), torch.rand(1, 5, 5)
    order = torch.tensor([3, 1, 4, 0, 2])
    shuffled = network(x[:, order], adjacency[:, order][:, :, order])
    torch.testing.assert_close(shuffled, network(x, adjacency)[:, order])


def test_reflecting_the_axes_keeps_every_cosine() -> None:
    x = torch.randn(6, 9, generator=torch.Generator().manual_seed(1))
    seen = reflect_axes(x, torch.Generator().manual_seed(2))
    torch.testing.assert_close(seen @ seen.T, x @ x.T)
    assert not torch.equal(seen, x)


def test_a_batch_without_counted_nodes_has_a_loss_of_0() -> None:
    nothing = torch.zeros(2, 3, dtype=torch.bool)
    assert linkage_loss(torch.ones(2, 3), torch.ones(2, 3), nothing) == 0
