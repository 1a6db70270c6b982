import numpy as np
import pytest

from hilander.comparison.objective import mean_f
from hilander.comparison.protocol import make_graph
from hilander.comparison.rival import Problem, Rival, noise_to_singletons
from hilander.comparison.rivals.communities import collect_edges
from hilander.comparison.rivals.linkage import cut_average_tree, grow_average_tree
from hilander.comparison.rivals.registry import RIVALS
from hilander.errors import SettingError
from hilander.synthetic.identities import make_identities

SLOW_TO_COMPILE = ("fast_hdbscan", "EVoC")
UNSUPERVISED = [
    method
    for method in RIVALS.values()
    if not method.needs_labels and method.name not in SLOW_TO_COMPILE
]
GOOD = {
    "cosine threshold": {"cosine": 0.75},
    "k-means": {"mean_size": 15.0},
    "DBSCAN": {"cosine": 0.75, "min_samples": 2},
    "ARO": {"k": 10, "distance": 2.0},
    "HAC": {"cosine": 0.6},
    "H-DBSCAN": {"min_cluster_size": 5, "min_samples": 1},
    "Graclus": {"k": 10, "mean_size": 15.0},
    "FINCH": {"level": 1},
    "Infomap": {"k": 10, "cosine": 0.5},
    "Leiden": {"k": 10, "log_resolution": 0.5},
    "fast_hdbscan": {"min_cluster_size": 5, "min_samples": 1},
    "EVoC": {"noise_level": 0.3, "base_min_cluster_size": 5, "layer": 0},
}


def run(method: Rival, problem: Problem) -> np.ndarray:
    try:
        method.check_installed()
    except SettingError as error:
        pytest.skip(str(error))
    params = GOOD[method.name]
    return noise_to_singletons(method.cluster(problem, method.start(problem, None, params), params))


@pytest.fixture(scope="module")
def easy() -> tuple[Problem, np.ndarray]:
    features, labels = make_identities(n_identities=20, size=15, spread=0.35, seed=2)
    return Problem(features, make_graph(features, 30)), labels


@pytest.mark.parametrize("method", UNSUPERVISED, ids=lambda method: method.name)
def test_an_easy_problem_is_solved(method: Rival, easy) -> None:
    problem, labels = easy
    assert mean_f(labels, run(method, problem)) > 0.85


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_TO_COMPILE)
def test_an_easy_problem_is_solved_by_compiled_rivals(name: str, easy) -> None:
    problem, labels = easy
    assert mean_f(labels, run(RIVALS[name], problem)) > 0.85


@pytest.mark.parametrize(
    "method", [one for one in UNSUPERVISED if not one.varies], ids=lambda method: method.name
)
def test_a_method_that_does_not_vary_does_not(method: Rival, easy) -> None:
    problem, _ = easy
    other = Problem(problem.features, problem.graph, seed=7)
    np.testing.assert_array_equal(run(method, problem), run(method, other))


@pytest.mark.parametrize("method", UNSUPERVISED, ids=lambda method: method.name)
def test_memory_grows_with_the_points(method: Rival) -> None:
    assert 0 < method.memory(1_000, 128, 80) < method.memory(100_000, 128, 80)


def test_average_linkage_is_that_of_scipy(easy) -> None:
    pytest.importorskip("fastcluster")
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    problem, _ = easy
    ours = cut_average_tree(problem, grow_average_tree(problem, None, {}), {"cosine": 0.6})
    theirs = fcluster(linkage(pdist(problem.features, "cosine"), "average"), 0.4, "distance")
    assert mean_f(ours, theirs.astype(np.int64)) == 1


def test_dbscan_on_the_graph_is_dbscan_where_balls_fit_into_it(easy) -> None:
    from sklearn.cluster import DBSCAN

    problem, _ = easy
    for params in ({"cosine": 0.75, "min_samples": 2}, {"cosine": 0.85, "min_samples": 5}):
        ours = RIVALS["DBSCAN"].cluster(problem, None, params)
        theirs = DBSCAN(
            eps=1 - params["cosine"], min_samples=params["min_samples"], metric="cosine"
        ).fit_predict(problem.features)
        np.testing.assert_array_equal(ours == -1, theirs == -1)
        core = ours != -1
        if core.any():
            assert mean_f(ours[core], theirs[core].astype(np.int64)) == 1


def test_an_edge_of_both_directions_is_collected_once(easy) -> None:
    problem, _ = easy
    edges = collect_edges(problem, {"k": 5, "cosine": 0.5})
    low, high, weight = edges.low, edges.high, edges.weight
    assert (low < high).all()
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == len(low)
    expected = np.einsum("ij,ij->i", problem.features[low], problem.features[high])
    np.testing.assert_allclose(weight, expected, atol=1e-5)
    assert weight.min() >= 0.5
