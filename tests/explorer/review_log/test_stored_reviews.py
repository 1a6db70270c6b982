"""Reviews that version 0.1 wrote open with the state that they had."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hilander.explorer.session.opening import open_explorer

FIXTURES = Path(__file__).parent / "fixtures"
RUNS = Path(__file__).resolve().parents[2] / "goldens" / "fixtures"


@pytest.fixture
def old_run(tmp_path):
    """A run of version 0.1 with its review, which has every kind of action."""
    folder = shutil.copytree(RUNS / "run-default", tmp_path / "run")
    (tmp_path / "run.explorer").mkdir()
    shutil.copy(FIXTURES / "review-0.1.sqlite", tmp_path / "run.explorer" / "review.sqlite")
    return folder


@pytest.fixture
def expected():
    return json.loads((FIXTURES / "review-0.1.json").read_text(encoding="utf-8"))


def test_a_review_of_version_0_1_has_the_state_it_had(old_run, expected):
    explorer = open_explorer(old_run)
    state, review = explorer.review.state, explorer.review
    assert state.labels.tolist() == expected["labels"]
    assert state.names == {int(group): name for group, name in expected["names"].items()}
    assert sorted(state.junk) == expected["junk"]
    assert state.answers == expected["answers"]
    assert [[list(pair) for pair in pairs] for pairs in state.constraints()] == (
        expected["constraints"]
    )
    assert [event.kind for event in review.log] == expected["kinds"]
    assert [event.seq for event in review.done] == expected["done"]
    assert [event.seq for event in review.undone] == expected["undone"]
    explorer.store.close()


def test_a_review_of_version_0_1_can_be_continued_and_undone(old_run):
    explorer = open_explorer(old_run)
    for _ in list(explorer.review.done):
        explorer.act("undo", {})
    np.testing.assert_array_equal(explorer.review.state.labels, explorer.base.labels)
    explorer.act("name", {"group": 0, "name": "new"})
    assert explorer.review.state.names == {0: "new"}
    explorer.store.close()


def test_a_review_of_version_0_1_is_carried_over_to_another_run(old_run, tmp_path):
    old = open_explorer(old_run)
    new = open_explorer(shutil.copytree(RUNS / "run-pretrained", tmp_path / "new"))
    carried = new.import_review(old.store)
    assert carried.events
    assert set(new.review.state.names.values()) <= set(old.review.state.names.values())
    old.store.close()
    new.store.close()
