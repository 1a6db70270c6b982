"""The state of a review as a function of its log."""

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.explorer.review_log.state import Event, ReviewState, resolve_undos

LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])


def state_after(*actions):
    state = ReviewState(LABELS, 4)
    for seq, (kind, payload) in enumerate(actions, 1):
        state.apply(Event(seq, kind, payload))
    return state


def check_partition(state):
    """Groups and labels agree, and every point is in one group."""
    seen = []
    for group in range(state.next_group):
        rows = state.rows_of(group)
        assert (state.labels[rows] == group).all()
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(state.labels)))


def test_a_merge_keeps_the_number_of_the_largest():
    state = state_after(("merge", {"groups": [1, 2, 3]}))
    assert state.labels.tolist() == [0, 0, 0, 2, 2, 2, 2, 2, 2, 2]
    check_partition(state)


def test_a_merge_keeps_the_name_of_the_largest_or_else_the_first():
    named = ("name", {"group": 1, "name": "one"})
    assert state_after(named, ("merge", {"groups": [2, 1]})).names == {2: "one"}
    both = state_after(named, ("name", {"group": 2, "name": "two"}), ("merge", {"groups": [1, 2]}))
    assert both.names == {2: "two"}


def test_a_split_gives_parts_new_numbers():
    state = state_after(("split", {"group": 2, "parts": [[5], [6, 7]]}))
    assert state.labels.tolist() == [0, 0, 0, 1, 1, 4, 5, 5, 2, 3]
    check_partition(state)


def test_a_number_is_never_used_twice():
    state = state_after(
        ("move", {"rows": [0], "to": None}),
        ("merge", {"groups": [4, 1]}),
        ("move", {"rows": [9], "to": None}),
    )
    assert state.labels[9] == 5
    check_partition(state)


def test_moving_all_items_empties_a_cluster_and_removes_its_name():
    state = state_after(
        ("name", {"group": 3, "name": "gone"}), ("junk", {"group": 3, "junk": True}),
        ("move", {"rows": [9], "to": 0}),
    )  # fmt: skip
    assert state.names == {}
    assert state.junk == set()
    check_partition(state)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("merge", {"groups": [1]}),
        ("merge", {"groups": [1, 1]}),
        ("merge", {"groups": [1, 99]}),
        ("split", {"group": 2, "parts": []}),
        ("split", {"group": 2, "parts": [[5, 6, 7, 8]]}),
        ("split", {"group": 2, "parts": [[0]]}),
        ("split", {"group": 2, "parts": [[5], [5]]}),
        ("split", {"group": 2, "parts": [[-1]]}),
        ("move", {"rows": [], "to": 1}),
        ("move", {"rows": [99], "to": 1}),
        ("move", {"rows": [0, 1], "to": 0}),
        ("name", {"group": 7, "name": "x"}),
        ("name", {"group": 1, "name": "x" * 201}),
        ("answer", {"key": "k", "verdict": "perhaps"}),
        ("explode", {}),
    ],
)
def test_an_impossible_action_changes_nothing(kind, payload):
    state = ReviewState(LABELS, 4)
    with pytest.raises(SettingError):
        state.apply(Event(1, kind, payload))
    assert state.labels.tolist() == LABELS.tolist()
    assert state.next_group == 4
    assert not state.names
    assert not state.changed
    assert not state.answers


def test_a_changed_copy_leaves_the_original_as_it_was():
    state = state_after(("name", {"group": 0, "name": "a"}))
    twin = state.copy()
    twin.apply(Event(2, "merge", {"groups": [0, 1], "must": [[0, 3]]}))
    twin.apply(Event(3, "name", {"group": 0, "name": "b"}))
    assert state.labels.tolist() == LABELS.tolist()
    assert state.names == {0: "a"}
    assert state.must == []


def test_a_pair_that_a_later_action_overrode_is_no_constraint():
    state = state_after(
        ("split", {"group": 2, "parts": [[5]], "cannot": [[5, 6]]}),
        ("merge", {"groups": [2, 4], "must": [[5, 6]]}),
    )
    assert state.constraints() == ([(5, 6)], [])
    state.apply(Event(3, "split", {"group": 2, "parts": [[5]], "cannot": [[6, 5]]}))
    assert state.constraints() == ([], [(5, 6)])


def test_undos_and_redos_of_a_log_are_resolved():
    log = [Event(seq, kind, {}) for seq, kind in enumerate(
        ("name", "junk", "undo", "undo", "redo", "move", "redo", "undo"), 1)]  # fmt: skip
    done, undone = resolve_undos(log)
    assert [event.seq for event in done] == [1]
    assert [event.seq for event in undone] == [6]


def test_random_actions_keep_every_point_in_one_group():
    rng = np.random.default_rng(5)
    state = ReviewState(rng.integers(0, 8, 60), 8)
    for seq in range(1, 300):
        groups = np.unique(state.labels)
        kind = rng.choice(["merge", "split", "move"])
        rows = rng.choice(60, size=3, replace=False)
        payload = {
            "merge": {"groups": rng.choice(groups, 2).tolist()},
            "split": {"group": int(state.labels[rows[0]]), "parts": [[int(rows[0])]]},
            "move": {"rows": rows.tolist(), "to": rng.choice([None, int(groups[0])])},
        }[kind]
        try:
            state.apply(Event(seq, str(kind), payload))
        except SettingError:
            continue
        check_partition(state)


def test_an_undo_of_an_earlier_action_keeps_the_numbers_of_later_clusters():
    first = Event(1, "move", {"rows": [0], "to": None, "new": [4]})
    second = Event(2, "move", {"rows": [9], "to": None, "new": [5]})
    done, undone = resolve_undos([first, second, Event(3, "undo", {"of": 1})])
    assert (done, undone) == ([second], [first])
    state = ReviewState(LABELS, 4)
    for event in done:
        state.apply(event)
    assert state.labels.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2, 5]
    assert state.next_group == 6
    done, _ = resolve_undos([first, second, Event(3, "undo", {"of": 1}), Event(4, "redo", {})])
    state.apply(done[-1])
    assert state.labels[0] == 4
    check_partition(state)


@pytest.mark.parametrize("new", [[1], [4, 5], [], [9, 9]])
def test_recorded_numbers_that_are_in_use_or_too_many_are_refused(new):
    state = state_after(("move", {"rows": [0], "to": None}))
    with pytest.raises(SettingError):
        state.apply(Event(2, "move", {"rows": [9], "to": None, "new": new}))
    assert state.labels[9] == 3
