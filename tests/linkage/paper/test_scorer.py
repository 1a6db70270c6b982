import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from hilander.graph import knn_graph
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import edge_density
from hilander.knn.search import build_knn_graph
from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.lander import same_probability
from hilander.linkage.paper.scorer import LanderScorer, choose_maps, make_inputs
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import make_network


@pytest.mark.parametrize("encoder", ["attention", "convolution"])
@pytest.mark.parametrize("features", ["identity", "average", "concat"])
@pytest.mark.parametrize("layers", [1, 3])
def test_blocks_of_any_size_score_like_the_plain_network(
    small_level, monkeypatch, encoder, features, layers
):
    graph, nodes, _ = small_level
    network = make_network(NetworkSettings(6, features, encoder, 12, layers, heads=2), 0).eval()
    x = torch.from_numpy(make_inputs(nodes, features))
    neighbours, affinity = torch.from_numpy(graph.neighbours), torch.from_numpy(graph.affinity)
    with torch.no_grad():
        batch = gather_neighbourhood(neighbours, affinity, torch.arange(len(nodes)), layers)
        plain = same_probability(network(x, batch)).numpy()
        encoded = network.encode(x, batch).numpy()
    for block in (10_000, 13, 1):
        monkeypatch.setattr(knn_graph, "_CACHED_NUMBERS", block * graph.k * 6)
        predict = LanderScorer(network, "cpu")
        scores = predict(graph, nodes)
        np.testing.assert_allclose(scores.linkage, plain, atol=1e-5)
        np.testing.assert_allclose(scores.density, edge_density(graph.affinity, plain), atol=1e-5)
        np.testing.assert_allclose(predict.encode(graph, nodes), encoded, atol=1e-5)


@pytest.mark.parametrize("features", ["identity", "concat"])
def test_less_memory_for_the_maps_scores_the_same_and_half_precision_nearly(small_level, features):
    graph, nodes, _ = small_level
    network = make_network(NetworkSettings(6, features, hidden=12), 0)
    one_map = 4 * len(nodes) * 6
    full, single, half = (
        LanderScorer(network, "cpu", memory=memory)(graph, nodes).linkage
        for memory in (2 * one_map, one_map, one_map - 1)
    )
    np.testing.assert_allclose(single, full, atol=1e-5)
    np.testing.assert_allclose(half, full, atol=1e-2)
    assert not np.array_equal(half, full)


def test_half_precision_is_not_used_by_default():
    assert choose_maps(1_000, 256, None) == (2, torch.float32)
    assert choose_maps(10**9, 256, None) == (1, torch.float32)
    assert choose_maps(10, 4, 320) == (2, torch.float32)
    assert choose_maps(10, 4, 319) == (1, torch.float32)
    assert choose_maps(10, 4, 159) == (1, torch.float16)


@pytest.mark.parametrize("features", ["identity", "average", "concat"])
@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_points_in_a_mapped_file_of_half_precision_are_scored(tmp_path, features, encoder):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(40, 6)).astype(np.float32)
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float16)
    np.save(tmp_path / "points.npy", points)
    graph = build_knn_graph(points.astype(np.float32), 5)
    predict = LanderScorer(make_network(NetworkSettings(6, features, encoder, 12), 0), "cpu")
    expected = predict(graph, start_nodes(points.astype(np.float32))).linkage
    mapped = start_nodes(np.load(tmp_path / "points.npy", mmap_mode="r"))
    np.testing.assert_allclose(predict(graph, mapped).linkage, expected, atol=1e-5)


def test_scores_do_not_depend_on_the_number_of_threads(small_level, monkeypatch):
    graph, nodes, _ = small_level
    monkeypatch.setattr(knn_graph, "_CACHED_NUMBERS", 7 * graph.k * 16)
    predict = LanderScorer(make_network(NetworkSettings(6, hidden=32), 0), "cpu")
    found, n_threads = [], torch.get_num_threads()
    for number in (1, 2):
        torch.set_num_threads(number)
        with threadpool_limits(number):
            found.append(predict(graph, nodes).linkage)
        assert torch.get_num_threads() == number
    torch.set_num_threads(n_threads)
    np.testing.assert_array_equal(*found)


def test_the_input_of_a_node_is_its_peak_its_mean_or_both(small_level):
    _, nodes, _ = small_level
    identity, average, both = (make_inputs(nodes, f) for f in ("identity", "average", "concat"))
    np.testing.assert_array_equal(identity, nodes.identity)
    np.testing.assert_array_equal(average, nodes.total / nodes.size[:, None].astype(np.float32))
    np.testing.assert_array_equal(both, np.concatenate([identity, average], axis=1))


def test_scoring_switches_dropout_off(small_level):
    graph, nodes, _ = small_level
    network = make_network(NetworkSettings(6, hidden=12, dropout=0.5), 0).train()
    predict = LanderScorer(network, "cpu")
    np.testing.assert_array_equal(predict(graph, nodes).linkage, predict(graph, nodes).linkage)


def test_a_graph_in_read_only_memory_is_scored_without_a_warning(small_level):
    graph, nodes, _ = small_level
    frozen = graph.neighbours.copy(), graph.affinity.copy()
    for array in frozen:
        array.flags.writeable = False
    predict = LanderScorer(make_network(NetworkSettings(6, hidden=12), 0), "cpu")
    scores = predict(KnnGraph(*frozen), nodes)
    np.testing.assert_array_equal(scores.linkage, predict(graph, nodes).linkage)


def test_equal_points_can_be_joined_and_their_density_follows():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 6)).astype(np.float32)
    points = np.repeat(points / np.linalg.norm(points, axis=1, keepdims=True), 3, axis=0)
    graph, nodes = build_knn_graph(points, 5), start_nodes(points)
    network = make_network(NetworkSettings(6, hidden=12), 0)
    plain = LanderScorer(network, "cpu")(graph, nodes)
    joined = LanderScorer(network, "cpu", join_equal_rows=True)(graph, nodes)
    equal = (points[graph.neighbours] == points[:, None]).all(axis=2)
    assert (equal.sum(axis=1) == 2).all()
    assert (plain.linkage[equal] < 1).all()
    assert (joined.linkage[equal] == 1).all()
    np.testing.assert_array_equal(joined.linkage[~equal], plain.linkage[~equal])
    np.testing.assert_array_equal(joined.density, edge_density(graph.affinity, joined.linkage))


def test_probabilities_stay_in_range_for_negative_cosines():
    points = np.concatenate([np.eye(6), -np.eye(6)]).astype(np.float32)
    graph = build_knn_graph(points, 11)
    assert graph.affinity.min() == -1
    for encoder in ("attention", "convolution"):
        network = make_network(NetworkSettings(6, "concat", encoder, 12), 0)
        scores = LanderScorer(network, "cpu")(graph, start_nodes(points))
        assert np.isfinite(scores.linkage).all()
        assert ((scores.linkage >= 0) & (scores.linkage <= 1)).all()
        assert (np.abs(scores.density) <= 1).all()
