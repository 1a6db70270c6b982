"""Parts of a graph that are scored as in the whole graph."""

import numpy as np
import pytest

from hilander.estimator import HiLander
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy import local_graph
from hilander.hierarchy.local_graph import cut_graph, score_rows
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities
from hilander.training.assignment import freeze_scorer
from tests.scorers import score_by_affinity


@pytest.fixture(scope="module")
def hierarchy():
    X, _ = make_identities(n_identities=40, size=12, dim=24, spread=0.5, seed=3)
    return HiLander.pretrained(device="cpu").cluster(X)


def test_rows_have_the_scores_that_they_have_in_the_whole_graph(hierarchy):
    basis, model = hierarchy.basis, HiLander.pretrained(device="cpu")
    score = freeze_scorer(model.model_, basis.base, "evidence", "cpu")
    rows = np.array([3, 40, 41, 200])
    found = score_rows(
        rows, basis.neighbours, basis.affinity, lambda some: basis.features[some], score
    )
    np.testing.assert_allclose(found.linkage, basis.linkage[rows], atol=0.05)
    np.testing.assert_allclose(found.density, hierarchy.density[rows], atol=0.02)


def test_the_first_points_of_a_part_have_the_scores_that_all_of_them_give(hierarchy):
    basis, model = hierarchy.basis, HiLander.pretrained(device="cpu")
    score = freeze_scorer(model.model_, basis.base, "evidence", "cpu")
    rows = np.array([3, 40, 41, 200])
    around = np.setdiff1d(np.union1d(basis.neighbours[rows], basis.sources.of(rows)), rows)
    rest = np.setdiff1d(basis.neighbours[around], np.union1d(rows, around))
    members = np.concatenate([rows, around, rest])
    part = cut_graph(members, basis.neighbours[members], basis.affinity[members], n_points=480)
    nodes = start_nodes(part.pad(basis.features[members]))
    whole = score(part.graph, nodes)
    first = score.score_first(part.graph, nodes, len(rows), len(rows) + len(around))
    np.testing.assert_array_equal(first.linkage, whole.linkage[: len(rows)])
    np.testing.assert_array_equal(first.density, whole.density[: len(rows)])
    fewer = score.score_first(part.graph, nodes, len(rows), len(rows))
    assert (fewer.linkage != whole.linkage[: len(rows)]).any()


def test_many_rows_are_scored_with_the_whole_graph(hierarchy, monkeypatch):
    basis, sizes = hierarchy.basis, []

    class Score:
        def __call__(self, graph, nodes):
            sizes.append(graph.n_nodes)
            return score_by_affinity(graph, nodes)

        def score_first(self, graph, nodes, n_wanted, n_around):
            scores = self(graph, nodes)
            return EdgeScores(scores.linkage[:n_wanted], scores.density[:n_wanted])

    score = Score()

    def take(rows):
        return basis.features[rows]

    rows = np.arange(0, 480, 2)
    whole = score_rows(rows, basis.neighbours, basis.affinity, take, score)
    monkeypatch.setattr(local_graph, "_WHOLE_SHARE", 2.0)
    part = score_rows(rows, basis.neighbours, basis.affinity, take, score)
    np.testing.assert_array_equal(part.linkage, whole.linkage)
    assert sizes[0] == 480


def test_a_part_keeps_lists_and_leads_out_to_padding_only():
    points = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    graph = build_knn_graph(points, 4)
    members, side = np.arange(0, 30, 2), np.arange(15) % 3
    part = cut_graph(members, graph.neighbours[members], graph.affinity[members], side)
    assert part.graph.n_nodes == 15 + 5
    assert part.n_members == 15
    ends = part.graph.neighbours[:15]
    assert (ends[~part.inside] >= 15).all()
    np.testing.assert_array_equal(
        members[ends[part.inside]], graph.neighbours[members][part.inside]
    )
    of = np.repeat(side[:, None], 4, axis=1)
    assert (side[ends[part.inside]] == of[part.inside]).all()
    assert (part.graph.neighbours[15:] >= 15).all()
    assert isinstance(score_by_affinity(part.graph, None), EdgeScores)


def test_the_order_of_the_members_is_that_of_the_part():
    points = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    graph = build_knn_graph(points, 4)
    rising = np.arange(0, 30, 2)
    for members in (rising, np.random.default_rng(1).permutation(rising)):
        part = cut_graph(members, graph.neighbours[members], graph.affinity[members])
        inside = np.isin(graph.neighbours[members], members)
        np.testing.assert_array_equal(part.inside, inside)
        ends = part.graph.neighbours[:15][inside]
        np.testing.assert_array_equal(members[ends], graph.neighbours[members][inside])
