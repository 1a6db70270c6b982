import tracemalloc
from itertools import pairwise

import pytest

from hilander.errors import GraphError
from hilander.knn.block_plan import list_bytes, plan_blocks
from hilander.knn.search import build_knn_graph
from hilander.synthetic.face_like import make_face_like
from tests.knn.overlap import share_found


def test_less_memory_never_gives_larger_blocks():
    plans = [plan_blocks(100_000, 128, 12, memory) for memory in (5e7, 1e8, 3e8, 1e9, None)]
    for small, large in pairwise(plans):
        assert small.block <= large.block
        assert small.batch <= large.batch
        assert small.pairs <= large.pairs
    assert plans[0].block < plans[-1].block or plans[0].batch < plans[-1].batch


def test_a_budget_below_the_size_of_the_graph_is_refused_with_one_that_suffices():
    expected = "too small to search 1000000 rows for 12 neighbours"
    with pytest.raises(GraphError, match=expected) as refusal:
        plan_blocks(1_000_000, 128, 12, 1e8)
    needed = float(str(refusal.value).split("at least ")[1].split(" GB")[0])
    assert plan_blocks(1_000_000, 128, 12, 1.01e9 * needed).block >= 1


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.9, 1.0])
def test_a_search_stays_within_its_budget_and_reaches_its_recall(target):
    features = make_face_like("imdb", scale=0.005)[0][:6_000]
    exact = build_knn_graph(features, 5, recall=1.0)
    # Without a budget the peak is 11 MB for exact search and 26 MB for cells.
    budget = list_bytes(len(features), 7) + 8e6
    tracemalloc.start()
    tight = build_knn_graph(features, 5, recall=target, memory=budget)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < budget
    assert tight.search.method == ("exact" if target == 1 else "cells")
    assert share_found(tight.neighbours, exact.neighbours) > target - 0.02
