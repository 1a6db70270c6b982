"""Actions: on disk, undoable, and unchanged after the run is opened again."""

import numpy as np
import pytest

from hilander.errors import HiLanderError, SettingError
from hilander.explorer.partition.parts import find_parts, find_subtree_rows
from hilander.explorer.review.queue import find_separated_groups, is_open
from hilander.explorer.session.opening import open_explorer


def reopen(explorer):
    return open_explorer(explorer.run.folder)


def several_parts(explorer):
    """A cluster of several parts."""
    grouping = explorer.reviewed()
    for group in grouping.order("size").tolist():
        at, parts = find_parts(grouping, group)
        if len(parts) > 1 and at >= 0:
            return group, at, parts
    pytest.fail("the run has no cluster of several parts")


def test_parts_are_disjoint_and_cover_the_cluster_at_every_level(explorer):
    grouping = explorer.reviewed()
    for group in range(grouping.n_groups):
        for at in range(-1, grouping.level):
            found, parts = find_parts(grouping, group, at)
            rows = np.concatenate([part.rows for part in parts])
            assert found == at
            assert sorted(rows) == sorted(grouping.rows_of(group))
            sizes = [len(part.rows) for part in parts]
            assert sizes == sorted(sizes, reverse=True)
            if at < 0:
                continue
            # Each part but one is linked to another part.
            assert sum(part.linkage is None for part in parts) == 1
            numbers = {part.number for part in parts}
            assert all(part.joined_to in numbers for part in parts if part.linkage is not None)


def test_subtree_rows_are_those_whose_links_lead_to_the_node(explorer):
    run = explorer.run
    parent, _ = run.hierarchy.parents(1)
    below = run.nested.tables[0]
    for node in range(len(parent)):
        inside = set(find_subtree_rows(run, 1, node).tolist())
        expected = set()
        for other in range(len(parent)):
            up = other
            while up != node and parent[up] != up:
                up = parent[up]
            if up == node:
                expected |= set(np.flatnonzero(below.labels == other).tolist())
        assert inside == expected


def test_a_split_adds_a_cluster_and_a_cannot_link(explorer):
    group, at, parts = several_parts(explorer)
    explorer.act("split", {"group": group, "parts": [[parts[1].number]], "level": at})
    new = explorer.reviewed().n_groups - 1
    assert set(explorer.reviewed().rows_of(new)) == set(parts[1].rows)
    must, cannot = explorer.review.state.constraints()
    assert must == []
    assert len(cannot) == 1
    again = reopen(explorer)
    np.testing.assert_array_equal(again.review.state.labels, explorer.review.state.labels)


def test_every_action_can_be_undone_and_redone(explorer):
    group, at, parts = several_parts(explorer)
    other = next(g for g in explorer.reviewed().order("size").tolist() if g != group)
    actions = [
        ("split", {"group": group, "parts": [[parts[1].number]], "level": at}),
        ("merge", {"groups": [group, other]}),
        ("move", {"rows": [int(parts[0].peak)], "to": None}),
        ("name", {"group": other, "name": "a name"}),
        ("junk", {"group": other, "junk": True}),
        ("answer", {"key": explorer.merges[0].key, "verdict": "skip"}),
    ]

    def snapshot():
        state = explorer.review.state
        return (
            state.labels.tolist(), dict(state.names), set(state.junk), dict(state.answers),
            state.constraints(),
        )  # fmt: skip

    seen = [snapshot()]
    for kind, body in actions:
        if kind in ("name", "junk") and explorer.reviewed().sizes[body["group"]] == 0:
            body = body | {"group": int(explorer.reviewed().order("size")[0])}
        explorer.act(kind, body)
        seen.append(snapshot())
    for before in seen[-2::-1]:
        explorer.act("undo", {})
        assert snapshot() == before
    with pytest.raises(SettingError, match="nothing to undo"):
        explorer.act("undo", {})
    for after in seen[1:]:
        explorer.act("redo", {})
        assert snapshot() == after
    with pytest.raises(SettingError, match="nothing to redo"):
        explorer.act("redo", {})


@pytest.mark.parametrize("verdict", ["same", "different", "skip"])
@pytest.mark.parametrize("kind", ["merge", "pair"])
def test_an_answer_closes_its_question_and_is_applied(explorer, kind, verdict):
    question = (explorer.merges if kind == "merge" else explorer.pairs)[0]
    state = explorer.review.state
    assert is_open(question, state, find_separated_groups(state))
    explorer.act("answer", {"key": question.key, "verdict": verdict})
    state = explorer.review.state
    assert not is_open(question, state, find_separated_groups(state))
    together = state.labels[question.a] == state.labels[question.b]
    were_together = kind == "merge"
    assert together == {"same": True, "different": False, "skip": were_together}[verdict]
    pair = (min(question.a, question.b), max(question.a, question.b))
    must, cannot = state.constraints()
    assert must == ([pair] if verdict == "same" else [])
    assert cannot == ([pair] if verdict == "different" else [])


def test_questions_are_sorted_by_weight(explorer):
    for queue in (explorer.merges, explorer.pairs):
        assert len(queue) > 3
        weights = [question.weight for question in queue]
        assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize(
    "key", ["", "merge", "merge-1", "merge-1--2", "merge-99-0", "pair-1-1", "pair-0-99999", "x-1-2",
            "merge-٣-1", "pair-1-2-3"]
)  # fmt: skip
def test_an_unknown_key_is_refused(explorer, key):
    with pytest.raises(SettingError):
        explorer.act("answer", {"key": key, "verdict": "same"})
    assert explorer.review.log == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("merge", {"groups": "12"}),
        ("merge", {"groups": [1, "2"]}),
        ("merge", {"groups": [True, 2]}),
        ("merge", {"groups": [0, 10**9]}),
        ("merge", {}),
        ("split", {"group": 0, "parts": [[]]}),
        ("split", {"group": 0, "parts": [[123456]]}),
        ("split", {"group": 0, "parts": [[1]], "level": 77}),
        ("move", {"rows": [10**9]}),
        ("move", {"rows": list(range(10_001))}),
        ("name", {"group": 0, "name": 5}),
        ("name", {"group": 0, "name": "x" * 500}),
        ("junk", {"group": 0, "junk": "yes"}),
        ("link", {"must": [[0, 1]]}),
        ("drop tables", {}),
    ],
)
def test_an_invalid_request_writes_nothing(explorer, kind, body):
    with pytest.raises(HiLanderError):
        explorer.act(kind, body)
    assert explorer.review.log == []
    assert reopen(explorer).review.log == []


def test_two_explorers_of_one_run_see_each_others_actions(explorer):
    other = reopen(explorer)
    explorer.act("name", {"group": 0, "name": "first"})
    other.act("name", {"group": 1, "name": "second"})
    explorer.act("junk", {"group": 2, "junk": True})
    assert explorer.review.state.names == {0: "first", 1: "second"}
    assert [event.kind for event in reopen(explorer).review.done] == ["name", "name", "junk"]


def test_sizes_and_peaks_of_reviewed_clusters_agree_with_their_members(explorer):
    rng = np.random.default_rng(1)
    for _ in range(25):
        groups = np.unique(explorer.review.state.labels)
        rows = rng.choice(explorer.run.n_points, 4, replace=False).tolist()
        try:
            if rng.random() < 0.5:
                explorer.act("merge", {"groups": rng.choice(groups, 2, replace=False).tolist()})
            else:
                explorer.act("move", {"rows": rows})
        except SettingError:
            continue
        grouping = explorer.reviewed()
        counted = np.bincount(grouping.labels, minlength=grouping.n_groups)
        np.testing.assert_array_equal(grouping.sizes, counted)
        alive = np.flatnonzero(grouping.alive)
        np.testing.assert_array_equal(grouping.labels[grouping.peaks[alive]], alive)
        for group in alive.tolist():
            members = grouping.members(group)
            assert sorted(members) == sorted(np.flatnonzero(grouping.labels == group))
            assert members[0] == grouping.peaks[group]
            density = explorer.run.hierarchy.density[members[1:]]
            assert (np.diff(density) <= 0).all()
