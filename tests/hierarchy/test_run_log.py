"""The log of a run records stages and levels."""

import pytest

from hilander.graph.scores import score_by_labels
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.run_log import RunLog
from hilander.hierarchy.scorers import LabelScorer
from hilander.synthetic.identities import make_identities


def walk(log):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    return walk_levels(X, LabelScorer(y), Rules(k=4, p_tau=0.5), work=log.work), y


def test_stages_are_recorded_in_order_and_their_times_add_up():
    log = RunLog()
    log.note("read", n=3)
    log.note("write")
    assert [stage["stage"] for stage in log.stages] == ["read", "write"]
    assert log.stages[0]["n"] == 3
    assert log.seconds == pytest.approx(sum(stage["seconds"] for stage in log.stages))


def test_every_level_is_passed_on_and_recorded_with_the_time_of_its_parts():
    log = RunLog()
    steps, y = walk(log)
    passed = list(log.watch(steps))
    assert log.first is passed[0]
    assert [stage["stage"] for stage in log.stages] == [f"level_{n}" for n in range(len(passed))]
    first = log.stages[0]
    assert (first["n_nodes"], first["n_clusters"]) == (len(y), len(passed[0].peaks))
    assert {"search_seconds", "score_seconds", "decode_seconds"} <= set(first)
    assert "kept" not in first


def test_the_search_is_that_of_the_first_graph():
    log = RunLog()
    assert log.search is None
    steps, y = walk(log)
    first = next(log.watch(steps))
    assert log.search is first.graph.search
    assert (first.scores.linkage == score_by_labels(first.graph, y).linkage).all()
