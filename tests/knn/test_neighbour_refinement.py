"""Refinement by neighbours, on lists that lack some neighbours."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.arrays.row_source import RowSource
from hilander.engines.threads import Workers, open_workers
from hilander.knn import search as search_module
from hilander.knn.block_join import Joiner
from hilander.knn.nearest_lists import Candidates, NearestLists
from hilander.knn.neighbour_refinement import compare_pairs, refine_by_neighbours
from hilander.knn.search import build_knn_graph
from hilander.synthetic.face_like import make_face_like
from tests.knn.overlap import share_found

COUNT = 8


@pytest.fixture(scope="module")
def faces():
    """4,000 face-like points."""
    return make_face_like("imdb", scale=0.004)[0][:4_000]


@pytest.fixture(scope="module")
def exact(faces):
    return build_knn_graph(faces, 2 * COUNT, recall=1.0)


def poor_joiner(faces, exact, workers, batch=64):
    """Each row lists a random half of its 16 nearest."""
    rng = np.random.default_rng(0)
    half = np.sort(rng.random(exact.neighbours.shape).argsort(axis=1)[:, :COUNT], axis=1)
    lists = NearestLists(len(faces), COUNT)
    lists.column[:] = np.take_along_axis(exact.neighbours, half, axis=1)
    lists.value[:] = np.take_along_axis(exact.affinity, half, axis=1)
    return Joiner(RowSource(faces), lists, workers, batch)


def refine(joiner):
    return sum(refine_by_neighbours(joiner))


def test_refinement_finds_more_than_half_of_the_missing_neighbours(faces, exact):
    joiner = poor_joiner(faces, exact, Workers())
    nearest = exact.neighbours[:, :COUNT]
    before = share_found(joiner.lists.column, nearest)
    assert refine(joiner) == len(faces)
    after = share_found(joiner.lists.column, nearest)
    assert 1 - after < (1 - before) / 2


def test_refined_lists_are_true_ordered_and_without_repeats(faces, exact):
    joiner = poor_joiner(faces, exact, Workers())
    before = joiner.lists.value.copy()
    refine(joiner)
    column, value = joiner.lists.column, joiner.lists.value
    true = np.einsum("ikd,id->ik", faces[column], faces)
    np.testing.assert_allclose(value, true, atol=1e-5)
    assert (np.diff(value, axis=1) <= 0).all()
    assert (value >= before).all()
    assert (column != np.arange(len(faces))[:, None]).all()
    assert (np.diff(np.sort(column, axis=1), axis=1) > 0).all()


def test_a_compared_pair_updates_both_of_its_rows():
    """Row 0 lists 1 and 1 lists 2: row 0 is compared with row 2, which lists a worse row."""
    angle = np.array([0.0, 0.1, 0.15, 3.0])
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    column = np.array([1, 2, 3, 2], dtype=np.int32)
    lists = NearestLists(4, 1)
    rows = np.arange(4, dtype=np.int32)
    lists.merge(Candidates(rows, column, np.einsum("id,id->i", points, points[column])))
    refine(Joiner(RowSource(points), lists, Workers()))
    np.testing.assert_array_equal(lists.column[:, 0], [1, 2, 0, 2])


def test_refined_lists_do_not_depend_on_the_number_of_workers(faces, exact):
    alone = poor_joiner(faces, exact, Workers(), batch=4)
    with open_workers() as workers:
        several = poor_joiner(faces, exact, workers, batch=4)
        refine(several)
    refine(alone)
    np.testing.assert_array_equal(alone.lists.column, several.lists.column)
    np.testing.assert_array_equal(alone.lists.value, several.lists.value)


@pytest.mark.parametrize("finds_nothing", [True, False])
@pytest.mark.usefixtures("cells_for_all")
def test_more_cells_are_probed_if_refinement_finds_nothing(faces, monkeypatch, finds_nothing):
    plans = []
    search = search_module.search_cells

    def record(joiner, cells, plan, **options):
        plans.append(cells)
        return search(joiner, cells, plan, **options)

    monkeypatch.setattr(search_module, "search_cells", record)
    if finds_nothing:
        monkeypatch.setattr(search_module, "refine_by_neighbours", lambda joiner: iter(()))
    graph = build_knn_graph(faces, 6, recall=0.97)
    assert graph.search.recall >= 0.97
    assert [plan.margin for plan in plans] == sorted({plan.margin for plan in plans})
    assert len(plans) == (2 if finds_nothing else 1)
    assert graph.search.n_probes == plans[-1].probes


@pytest.mark.usefixtures("cells_for_all")
def test_without_refinement_the_cells_alone_reach_the_recall(faces, monkeypatch):
    refined = []

    def record(joiner):
        refined.append(joiner)
        return refine_by_neighbours(joiner)

    monkeypatch.setattr(search_module, "refine_by_neighbours", record)
    alone = build_knn_graph(faces, 6, recall=0.9, refine=False)
    assert not refined
    assert alone.search.recall >= 0.9
    assert build_knn_graph(faces, 6, recall=0.9).search.n_probes < alone.search.n_probes
    assert refined


@pytest.mark.usefixtures("cells_for_all")
def test_cells_are_probed_only_as_far_as_refinement_makes_necessary(faces, monkeypatch):
    """A refinement of every third row only finds some neighbours, but not enough."""
    plans, rounds = [], []
    search = search_module.search_cells

    def record(joiner, cells, plan, **options):
        plans.append((cells.margin, options.get("beyond")))
        return search(joiner, cells, plan, **options)

    def refine_some(joiner):
        rounds.append(len(plans))
        others = np.arange(len(faces)) % 3 > 0
        kept = joiner.lists.value[others], joiner.lists.column[others]
        yield from refine_by_neighbours(joiner)
        joiner.lists.value[others], joiner.lists.column[others] = kept

    monkeypatch.setattr(search_module, "search_cells", record)
    monkeypatch.setattr(search_module, "refine_by_neighbours", refine_some)
    graph = build_knn_graph(faces, 6, recall=0.97)
    assert graph.search.recall >= 0.97
    assert len(plans) > 1
    assert len(rounds) > 1  # a second refinement, before all is left to the cells
    # Each search begins where the one before it ended.
    assert plans[0][1] is None
    assert [beyond for _, beyond in plans[1:]] == [margin for margin, _ in plans[:-1]]


def as_pairs(row, column, n_rows):
    both = np.concatenate([row, column]), np.concatenate([column, row])
    return csr_matrix((np.ones(2 * len(row), dtype=np.float32), both), (n_rows, n_rows))


@pytest.mark.parametrize("product", [64, 1 << 21])
def test_given_pairs_are_compared_for_both_rows(product):
    rng = np.random.default_rng(3)
    points = rng.standard_normal((40, 4)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    cosine = points @ points.T
    np.fill_diagonal(cosine, -np.inf)
    row, column = np.triu_indices(40, 1)
    lists = NearestLists(40, 3)
    joiner = Joiner(RowSource(points), lists, Workers(None, product), 2)
    compare_pairs(joiner, as_pairs(row, column, 40))
    np.testing.assert_array_equal(lists.column, np.argsort(-cosine, axis=1)[:, :3])


@pytest.mark.usefixtures("cells_for_all")
def test_a_search_finds_the_given_pairs(faces):
    nearest = build_knn_graph(faces, 4, recall=1.0).neighbours
    poor = build_knn_graph(faces, 4, recall=0.6)
    missed = ~(nearest[:, :, None] == poor.neighbours[:, None, :]).any(axis=2)
    row, place = np.nonzero(missed)
    assert len(row) > 100
    # Every second missed neighbour is given as a pair. Only those must be found.
    given = slice(None, None, 2)
    pairs = as_pairs(row[given], nearest[row, place][given], len(faces))
    graph = build_knn_graph(faces, 4, recall=0.6, pairs=pairs)
    found = (nearest[:, :, None] == graph.neighbours[:, None, :]).any(axis=2)
    assert found[row[given], place[given]].all()


@pytest.mark.usefixtures("cells_for_all")
def test_given_pairs_are_ignored_if_some_rows_are_equal(faces):
    doubled = np.concatenate([faces, faces[:50]])
    pairs = as_pairs(np.array([4_000]), np.array([4_049]), len(doubled))
    with_pairs = build_knn_graph(doubled, 4, pairs=pairs)
    np.testing.assert_array_equal(with_pairs.neighbours, build_knn_graph(doubled, 4).neighbours)
