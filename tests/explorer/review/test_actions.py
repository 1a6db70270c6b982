"""Actions: on disk, undoable, and unchanged after the run is opened again."""

import numpy as np
import pytest

from hilander.errors import HiLanderError, SettingError
from hilander.explorer.partition.parts import find_parts
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
        ("answer", {"verdict": "skip"}),
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
        if kind == "answer":
            body = body | {"key": explorer.questions[0].key}
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
