import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.graph import knn_graph
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes, start_nodes
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.background import Background, measure_background
from hilander.linkage.evidence.edge_features import (
    EdgeFeatures,
    SecondStageFeatures,
    compute_edge_features,
    compute_second_stage,
)
from hilander.linkage.evidence.edge_measures import CLOSE
from hilander.linkage.evidence.registry import feature_names, features_of
from hilander.synthetic.identities import make_identities

K = 7


@pytest.fixture(scope="module")
def points():
    return make_identities(n_identities=8, size=8, dim=12, spread=0.8, seed=0)[0]


@pytest.fixture(scope="module")
def level(points):
    return build_knn_graph(points, K), start_nodes(points), measure_background(points)


def column(features, name):
    return features[..., feature_names("edge").index(name)]


def every_edge(graph):
    for node, row in enumerate(graph.neighbours):
        for place, other in enumerate(row):
            yield node, place, other


# The columns.


def test_there_is_one_column_for_each_registered_feature(level):
    features, names = compute_edge_features(*level), feature_names("edge")
    assert features.shape == (*level[0].neighbours.shape, len(names))
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def check_ranges(entries, features):
    for number, entry in enumerate(entries):
        low, high = entry.range
        values = features[..., number]
        assert low - 1e-5 <= values.min(), entry.name
        assert values.max() <= high + 1e-5, entry.name


def test_every_feature_is_in_its_range(level):
    graph, nodes, background = level
    check_ranges(features_of("edge"), compute_edge_features(graph, nodes, background))
    probability = np.random.default_rng(7).uniform(size=graph.affinity.shape).astype(np.float32)
    check_ranges(features_of("second stage"), compute_second_stage(graph, probability))


def test_an_affinity_is_compared_with_the_others_of_both_ends(level):
    graph, nodes, background = level
    features = compute_edge_features(graph, nodes, background)
    rescale = (graph.affinity - background.centre) / (1 - background.centre)
    for node, place, other in every_edge(graph):
        for end, name in ((node, "i"), (other, "j")):
            mean, best = np.mean(rescale[end]), max(rescale[end])
            expected = {
                f"above_mean_{name}": rescale[node, place] - mean,
                f"below_best_{name}": rescale[node, place] - best,
                f"below_close_{name}": rescale[node, place] - np.mean(rescale[end][:3]),
                f"above_last_{name}": rescale[node, place] - min(rescale[end]),
                f"best_{name}": best,
                f"mean_{name}": mean,
            }
            for label, value in expected.items():
                found = column(features, label)[node, place]
                assert found == pytest.approx(value, abs=1e-5), label


def test_ranks_mutual_edges_and_shared_neighbours_are_counted(level):
    graph, nodes, background = level
    features = compute_edge_features(graph, nodes, background)
    lists = [row.tolist() for row in graph.neighbours]
    mutual = 0
    for node, place, other in every_edge(graph):
        back = lists[other].index(node) + 1 if node in lists[other] else None
        mutual += back is not None
        shared = len(set(lists[node]) & set(lists[other]))
        close = len(set(lists[node][:CLOSE]) & set(lists[other][:CLOSE]))
        expected = {
            "rank_ij": np.log(place + 1),
            "mutual": float(back is not None),
            "shared": shared / K,
            "shared_close": close / CLOSE,
        }
        for name, value in expected.items():
            assert column(features, name)[node, place] == pytest.approx(value, abs=1e-6), name
        rank_back = column(features, "rank_ji")[node, place]
        assert rank_back == pytest.approx(np.log(back)) if back else rank_back > np.log(K)
    assert 0 < mutual < graph.neighbours.size


def test_ends_are_compared_with_the_mean_neighbours(level):
    graph, nodes, background = level
    features = compute_edge_features(graph, nodes, background)
    own = nodes.identity

    def mean_neighbour(node, reach):
        total = sum(own[other] for other in graph.neighbours[node][:reach])
        return total / np.linalg.norm(total)

    def rescale(cosine):
        return (cosine - background.centre) / (1 - background.centre)

    for node, place, other in every_edge(graph):
        expected = {
            "i_to_mean_j": rescale(own[node] @ mean_neighbour(other, K)),
            "mean_i_to_j": rescale(mean_neighbour(node, K) @ own[other]),
            "mean_to_mean": mean_neighbour(node, K) @ mean_neighbour(other, K),
            "i_to_close_j": rescale(own[node] @ mean_neighbour(other, CLOSE)),
            "close_i_to_j": rescale(mean_neighbour(node, CLOSE) @ own[other]),
            "close_to_close": mean_neighbour(node, CLOSE) @ mean_neighbour(other, CLOSE),
        }
        for name, value in expected.items():
            assert column(features, name)[node, place] == pytest.approx(value, abs=1e-4), name


@pytest.mark.parametrize("numbers", [1, 500])
def test_features_computed_in_blocks_are_those_of_the_whole_graph(level, monkeypatch, numbers):
    graph, nodes, background = level
    whole = compute_edge_features(graph, nodes, background)
    probability = np.random.default_rng(6).uniform(size=graph.affinity.shape).astype(np.float32)
    whole_second = compute_second_stage(graph, probability)
    monkeypatch.setattr(knn_graph, "_CACHED_NUMBERS", numbers)
    first = EdgeFeatures(graph, nodes, background)
    second = SecondStageFeatures(graph, probability, first.rank_back)
    for rows in (slice(0, 1), slice(1, 14), slice(14, graph.n_nodes)):
        np.testing.assert_allclose(first.of(rows), whole[rows], atol=1e-5)
        np.testing.assert_allclose(second.of(rows), whole_second[rows], atol=1e-5)


# Invariances.


def renumber(graph, nodes, order):
    """The same level with node order[i] in place i."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    moved = Nodes(nodes.identity[order], nodes.total[order], nodes.size[order], nodes.point[order])
    return KnnGraph(place[graph.neighbours[order]], graph.affinity[order]), moved


def test_renumbering_the_nodes_renumbers_the_features(level):
    graph, nodes, background = level
    rng = np.random.default_rng(2)
    order = rng.permutation(graph.n_nodes)
    moved_graph, moved_nodes = renumber(graph, nodes, order)
    features = compute_edge_features(graph, nodes, background)
    moved = compute_edge_features(moved_graph, moved_nodes, background)
    np.testing.assert_allclose(moved, features[order], atol=1e-5)
    probability = rng.uniform(size=graph.affinity.shape).astype(np.float32)
    np.testing.assert_allclose(
        compute_second_stage(moved_graph, probability[order]),
        compute_second_stage(graph, probability)[order],
        atol=1e-5,
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_background_does_not_depend_on_the_order_of_the_points(seed):
    rng = np.random.default_rng(seed)
    points = make_identities(n_identities=40, size=25, dim=8, spread=0.9, seed=seed)[0]
    shuffled = points[rng.permutation(len(points))]
    assert measure_background(shuffled).centre == measure_background(points).centre


def test_features_do_not_depend_on_the_dimension_of_the_embeddings(points):
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(40, 12)))[0].T  # (12, 40), orthonormal rows
    wide = (points.astype(np.float64) @ turn).astype(np.float32)
    narrow, widened = (
        compute_edge_features(build_knn_graph(X, K), start_nodes(X), measure_background(X))
        for X in (points, wide)
    )
    np.testing.assert_allclose(widened, narrow, atol=1e-3)


# The background.


def test_the_background_is_the_cosine_of_two_random_points():
    points = make_identities(n_identities=30, size=10, dim=6, spread=0.9, seed=4)[0]
    points = unit_rows(points + np.float32(0.4))
    cosine = points @ points.T
    median = np.median(cosine[np.triu_indices(len(points), 1)])
    assert measure_background(points).centre == pytest.approx(median, abs=0.01)


def test_a_rescaled_cosine_is_0_at_the_background_and_1_for_equal_points():
    background = Background(0.3)
    rescale = background.rescale(np.array([0.3, 1.0, -0.4], dtype=np.float32))
    np.testing.assert_allclose(rescale, [0, 1, -1], atol=1e-6)


def test_points_that_are_nearly_all_equal_have_finite_features():
    points = np.tile(np.eye(4, dtype=np.float32)[:1], (30, 1))
    points[:3] = np.eye(4, dtype=np.float32)[1:]
    background = measure_background(points)
    features = compute_edge_features(build_knn_graph(points, 5), start_nodes(points), background)
    assert np.isfinite(features).all()


# The second stage.


def test_the_second_stage_compares_the_neighbours_of_both_ends(level):
    graph, _, _ = level
    rng = np.random.default_rng(5)
    probability = rng.uniform(0.05, 0.95, size=graph.affinity.shape).astype(np.float32)
    features, names = compute_second_stage(graph, probability), feature_names("second stage")
    assert features.shape == (graph.n_nodes, graph.k, len(names))
    assert features.dtype == np.float32
    either = [{} for _ in range(graph.n_nodes)]
    for node, place, other in every_edge(graph):
        value = float(probability[node, place])
        either[node][other] = max(value, either[node].get(other, 0))
        either[other][node] = max(value, either[other].get(node, 0))
    degree, best = probability.sum(axis=1), probability.max(axis=1)

    def logit(p):
        return np.log(p / (1 - p))

    for node, place, other in every_edge(graph):
        here, there, own = either[node], either[other], float(probability[node, place])
        back = [probability[other, at] for at in np.flatnonzero(graph.neighbours[other] == node)]
        common = here.keys() & there.keys()
        both = sum(here[m] * there[m] for m in common)
        of_i, of_j = sum(here[m] for m in common), sum(there[m] for m in common)
        n_common = max(len(common), 1)
        expected = {
            "logit": logit(own),
            "logit_higher": logit(max([own, *back])),
            "logit_lower": logit(min([own, *back])),
            "agreement": both / n_common,
            "jaccard": both / max(of_i + of_j - both, 1e-3),
            "only_i": (of_i - both) / n_common,
            "only_j": (of_j - both) / n_common,
            "in_common": len(common) / K,
            "degree_i": degree[node] / K,
            "degree_j": degree[other] / K,
            "degree_min": min(degree[node], degree[other]) / K,
            "best_logit_i": logit(best[node]),
            "best_logit_j": logit(best[other]),
            "below_best_logit_i": logit(own) - logit(best[node]),
            "below_best_logit_j": logit(own) - logit(best[other]),
        }
        assert set(expected) == set(names)
        for name, value in expected.items():
            found = features[node, place, names.index(name)]
            assert found == pytest.approx(value, abs=1e-3), name


def test_probabilities_of_0_and_1_have_finite_features(level):
    graph, _, _ = level
    for probability in (0, 1):
        certain = np.full(graph.affinity.shape, probability, dtype=np.float32)
        assert np.isfinite(compute_second_stage(graph, certain)).all()
