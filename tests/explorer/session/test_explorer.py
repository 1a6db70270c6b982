"""One opened run with its review: opened twice, rewritten, or given the review of another run."""

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.explorer.session.opening import open_explorer


def test_two_explorers_of_one_run_see_each_others_actions(explorer):
    other = open_explorer(explorer.run.folder)
    explorer.act("name", {"group": 0, "name": "first"})
    other.act("name", {"group": 1, "name": "second"})
    explorer.act("junk", {"group": 2, "junk": True})
    assert explorer.review.state.names == {0: "first", 1: "second"}
    assert [event.kind for event in open_explorer(explorer.run.folder).review.done] == [
        "name",
        "name",
        "junk",
    ]


def test_a_rewritten_run_keeps_its_review(make_run):
    folder = make_run("run", seed=1)
    first = open_explorer(folder)
    largest = int(first.reviewed().order("size")[0])
    first.act("name", {"group": largest, "name": "the largest"})
    pair = next(one for one in first.questions if one.kind == "pair")
    answer = first.act("answer", {"key": pair.key, "verdict": "same"}).payload
    ids = first.run.items.ids_of(np.array([answer["a"], answer["b"]]))
    members = set(first.run.items.ids_of(first.reviewed().rows_of(largest)))
    first.store.close()

    make_run("run", seed=1, p_tau=0.75)
    second = open_explorer(folder)
    assert second.run.fingerprint != first.run.fingerprint
    rows = [second.run.items.row_by_id[name] for name in ids]
    labels = second.review.state.labels
    assert labels[rows[0]] == labels[rows[1]]
    ((group, name),) = second.review.state.names.items()
    assert name == "the largest"
    now = set(second.run.items.ids_of(second.reviewed().rows_of(group)))
    assert len(now & members) * 2 >= len(members)
    with pytest.raises(SettingError, match="nothing to undo"):
        second.act("undo", {})
    # Opened again it is the same run, so nothing is carried over twice.
    again = open_explorer(folder)
    assert [event.seq for event in again.review.log] == [event.seq for event in second.review.log]


def test_a_review_is_imported_from_another_run(make_run):
    first = open_explorer(make_run("one", seed=1))
    first.act("name", {"group": 0, "name": "zero"})
    second = open_explorer(make_run("two", seed=1, p_tau=0.8))
    second.import_review(first.store)
    assert list(second.review.state.names.values()) == ["zero"]
    with pytest.raises(SettingError, match="has a review already"):
        second.import_review(first.store)


def test_any_action_can_be_undone_unless_later_ones_build_on_it(explorer):
    merged = explorer.act("merge", {"groups": [0, 1]})
    named = explorer.act("name", {"group": 2, "name": "tulips"})
    built = explorer.act("move", {"rows": [int(explorer.base.peaks[0])]})
    explorer.act("undo", {"seq": named.seq})
    assert explorer.review.state.names == {}
    with pytest.raises(SettingError, match="undone already"):
        explorer.act("undo", {"seq": named.seq})
    explorer.act("undo", {"seq": built.seq})
    explorer.act("undo", {"seq": merged.seq})
    assert explorer.review.state.labels.tolist() == explorer.base.labels.tolist()


def test_an_action_that_later_ones_need_is_not_undone_alone(explorer):
    made = explorer.act("move", {"rows": [5]})
    (number,) = made.payload["new"]
    explorer.act("name", {"group": number, "name": "alone"})
    with pytest.raises(SettingError, match="1 later actions build on it"):
        explorer.act("undo", {"seq": made.seq})
    assert explorer.review.state.names == {number: "alone"}


def test_an_undone_action_is_the_same_after_a_restart(explorer, run_folder):
    first = explorer.act("move", {"rows": [5]})
    explorer.act("move", {"rows": [9]})
    explorer.act("undo", {"seq": first.seq})
    labels = explorer.review.state.labels.tolist()
    again = open_explorer(run_folder)
    assert again.review.state.labels.tolist() == labels
    assert [event.seq for event in again.review.undone] == [first.seq]
    again.store.close()


@pytest.mark.parametrize("damage", ["pages", "row"])
def test_a_damaged_review_is_set_aside_and_a_new_one_started(explorer, run_folder, damage):
    explorer.act("name", {"group": int(explorer.reviewed().order("size")[0]), "name": "mine"})
    path = explorer.store.path
    if damage == "row":
        explorer.store._db.execute("UPDATE events SET payload = x'00'")
    explorer.store.close()
    if damage == "pages":
        path.write_bytes(path.read_bytes()[:5000] + b"\xff" * 9000)
    before = path.read_bytes()
    with pytest.warns(UserWarning, match="is set aside as .*review-damaged-"):
        again = open_explorer(run_folder)
    again.store.close()
    (aside,) = path.parent.glob("review-damaged-*.sqlite")
    assert aside.read_bytes() == before
    assert not again.review.log
    assert "set aside" in again.run.notes[-1]
