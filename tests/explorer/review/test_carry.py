"""A review is carried over to a new clustering."""

import numpy as np

from hilander.explorer.review.carry import carry_over
from hilander.explorer.review_log.state import Event, ReviewState
from hilander.explorer.review_log.store import Base

IDS = [f"i{row}" for row in range(12)]
OLD = np.repeat([0, 1, 2, 3], 3)


def carried(new_labels, *actions, new_ids=None, labels=OLD):
    base = Base(1, "old", 4, IDS, labels)
    old = ReviewState(labels, 4)
    for seq, (kind, payload) in enumerate(actions, 1):
        old.apply(Event(seq, kind, payload))
    labels = np.asarray(new_labels)
    new = Base(0, "new", int(labels.max()) + 1, new_ids or IDS, labels)
    result = carry_over(base, old, new)
    state = ReviewState(labels, new.n_clusters)
    for seq, (kind, payload) in enumerate(result.events, 1):
        state.apply(Event(seq, kind, payload))
    return result, state


def named(group, name):
    return ("name", {"group": group, "name": name})


def test_a_name_follows_its_members_to_their_new_number():
    _, state = carried(
        np.repeat([3, 2, 1, 0], 3), named(0, "ada"), ("junk", {"group": 2, "junk": 1})
    )
    assert state.names == {3: "ada"}
    assert state.junk == {1}


def test_a_name_follows_its_members_if_the_items_are_reordered():
    order = np.random.default_rng(0).permutation(12)
    _, state = carried(OLD[order], named(1, "bo"), new_ids=[IDS[i] for i in order])
    assert state.names == {1: "bo"}


def test_a_must_link_is_kept_by_merging():
    decision = ("merge", {"groups": [0, 1], "must": [[0, 3]]})
    result, state = carried(OLD, decision, named(0, "both"))
    assert state.labels[0] == state.labels[3]
    assert state.constraints()[0] == [(0, 3)]
    assert list(state.names.values()) == ["both"]
    assert result.conflicts == []


def test_a_cannot_link_that_the_new_run_respects_changes_nothing():
    decision = ("split", {"group": 0, "parts": [[0]], "cannot": [[0, 1]]})
    new = OLD.copy()
    new[0] = 4
    result, state = carried(new, decision)
    assert result.conflicts == []
    assert state.constraints()[1] == [(0, 1)]
    np.testing.assert_array_equal(state.labels, new)


def test_a_cannot_link_inside_one_new_cluster_is_a_conflict():
    decision = ("split", {"group": 0, "parts": [[0]], "cannot": [[0, 1]]})
    result, _ = carried(OLD, decision)
    (conflict,) = result.conflicts
    assert conflict["kind"] == "different"
    assert conflict["clusters"] == [0]
    assert "i0" in conflict["text"]


def test_a_must_link_that_would_break_a_cannot_link_is_a_conflict():
    # 0 and 3 are the same; 1 and 4 are not; the new run puts 0 with 1 and 3 with 4.
    decision = (
        ("move", {"rows": [1], "to": None}),
        ("merge", {"groups": [0, 1], "must": [[0, 3]]}),
        ("answer", {"key": "k", "verdict": "different", "cannot": [[1, 4]]}),
    )
    result, state = carried(OLD, *decision)
    assert [conflict["kind"] for conflict in result.conflicts] == ["same"]
    assert state.labels[0] != state.labels[3]


def test_two_names_in_one_new_cluster_are_a_conflict():
    new = np.where(OLD == 1, 0, OLD)
    result, state = carried(new, named(0, "ada"), named(1, "bo"))
    assert state.names == {0: "ada"}
    assert [conflict["kind"] for conflict in result.conflicts] == ["name"]
    assert "bo" in result.conflicts[0]["text"]


def test_the_name_of_a_scattered_cluster_is_a_conflict_and_goes_to_most_of_its_items():
    old = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3])
    new = np.array([5, 5, 0, 2, 3, 1, 1, 5, 2, 3, 3, 4])
    result, state = carried(new, named(0, "ada"), labels=old)
    assert state.names == {5: "ada"}
    assert [conflict["kind"] for conflict in result.conflicts] == ["scattered"]
    # Another name that has the cluster by right keeps it.
    new[[7, 8, 9]] = 5
    result, state = carried(new, named(0, "ada"), named(2, "bo"), labels=old)
    assert state.names == {5: "bo"}
    assert [conflict["kind"] for conflict in result.conflicts] == ["scattered"]


def test_items_that_are_typical_of_names_stay_typical():
    actions = [("name", {"group": group, "name": name, "head": head})
               for group, name, head in ((0, "ada", 1), (1, "bo", 4), (2, "Ada", 8))]  # fmt: skip
    new = OLD.copy()
    new[4] = 3
    _, state = carried(new, *actions)
    heads = state.typical_items().tolist()
    assert len(heads) == 2  # one of each name, whatever its case
    assert 4 not in heads  # it is in another cluster now
    assert set(OLD[heads]) in ({0, 1}, {1, 2})


def test_missing_items_are_conflicts():
    decision = ("merge", {"groups": [0, 1], "must": [[0, 3]]})
    new_ids = [f"other{row}" for row in range(12)]
    result, state = carried(OLD, decision, named(2, "cy"), new_ids=new_ids)
    assert sorted(conflict["kind"] for conflict in result.conflicts) == ["lost", "lost"]
    assert state.names == {}
