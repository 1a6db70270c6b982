import numpy as np
import pytest

from hilander.comparison.protocol import make_graph
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.rank_order import (
    link_by_rank_order,
    measure_rank_order,
    rank_order_distances,
)
from hilander.synthetic.identities import make_identities


def distance_by_definition(neighbours: np.ndarray, a: int, b: int) -> float:
    """The published formula, one pair at a time, with Python lists."""
    k = neighbours.shape[1]
    lists = [[node, *neighbours[node].tolist()] for node in range(len(neighbours))]

    def rank(owner: int, member: int) -> int:
        return lists[owner].index(member) if member in lists[owner] else k + 1

    def one_way(first: int, second: int) -> int:
        upto = min(rank(first, second), k)
        return sum(lists[first][i] not in lists[second] for i in range(upto + 1))

    return (one_way(a, b) + one_way(b, a)) / min(rank(a, b), rank(b, a))


@pytest.mark.parametrize("seed", range(3))
def test_the_distance_is_that_of_the_published_formula(seed: int) -> None:
    features, _ = make_identities(n_identities=8, size=6, dim=6, spread=0.9, seed=seed)
    neighbours = make_graph(features, 7).neighbours
    found = rank_order_distances(neighbours)
    for a in range(len(neighbours)):
        for column, b in enumerate(neighbours[a]):
            assert found[a, column] == pytest.approx(distance_by_definition(neighbours, a, int(b)))


def test_blocks_do_not_change_the_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = make_identities(n_identities=8, size=6, dim=6, spread=0.9, seed=0)
    neighbours = make_graph(features, 7).neighbours
    whole = rank_order_distances(neighbours)
    monkeypatch.setattr("hilander.comparison.rivals.rank_order._BLOCK_LOOKUPS", 200)
    np.testing.assert_array_equal(rank_order_distances(neighbours), whole)


def test_well_separated_identities_are_found() -> None:
    features, labels = make_identities(n_identities=12, size=15, spread=0.3, seed=1)
    problem = Problem(features, make_graph(features, 20))
    params = {"k": 10, "distance": 2.0}
    found = link_by_rank_order(problem, measure_rank_order(problem, None, params), params)
    assert len(np.unique(found)) == 12
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 12
