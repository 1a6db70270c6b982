"""The queue of questions: what is asked, in which order, and what an answer does."""

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.explorer.review.queue import KINDS, parse_question
from hilander.explorer.session.opening import open_explorer


def first_of(explorer, kind, n_pieces=1):
    found = [one for one in explorer.questions if one.kind == kind and len(one.pieces) >= n_pieces]
    if not found:
        pytest.skip(f"the run has no question of {kind} with {n_pieces} pieces")
    return found[0]


def test_questions_of_all_kinds_are_in_the_order_of_their_gain(explorer):
    gains = [question.gain for question in explorer.questions]
    assert gains == sorted(gains, reverse=True)
    assert min(gains) > 0
    assert {question.kind for question in explorer.questions} >= {"part", "odd", "pair"}
    assert {question.kind for question in explorer.questions} <= set(KINDS)


def test_the_gain_is_the_probability_of_a_change_times_what_it_changes(explorer):
    grouping = explorer.reviewed()
    for question in explorer.questions:
        if question.kind != "pair":
            continue
        a = grouping.sizes[question.group]
        sizes = grouping.sizes[list(question.pieces)]
        expected = sum(p * 2 * a * b / (a + b) for p, b in zip(question.same, sizes, strict=True))
        assert question.gain == pytest.approx(expected, rel=1e-4)
        assert min(question.same) >= 0.05


@pytest.mark.parametrize("verdict", ["same", "different", "skip"])
@pytest.mark.parametrize("kind", ["part", "odd", "pair"])
def test_an_answer_is_applied_and_not_asked_again(explorer, kind, verdict):
    question = first_of(explorer, kind)
    _, pieces = explorer.find_question(question.key)
    before = explorer.review.state.labels.copy()
    event = explorer.act("answer", {"key": question.key, "verdict": verdict})
    labels = explorer.review.state.labels
    assert question.key not in [one.key for one in explorer.questions]
    head = event.payload["a"]
    for rows in pieces:
        together = labels[rows] == labels[head]
        if verdict == "skip":
            np.testing.assert_array_equal(labels, before)
        else:
            assert (together == (verdict == "same")).all()
    must, cannot = explorer.review.state.constraints()
    assert len(must) == (len(pieces) if verdict == "same" else 0)
    assert len(cannot) == (len(pieces) if verdict == "different" else 0)


def test_exceptions_are_answered_the_other_way(explorer):
    question = first_of(explorer, "odd", 2)
    _, pieces = explorer.find_question(question.key)
    other = question.pieces[1]
    event = explorer.act("answer", {"key": question.key, "verdict": "same", "except": [other]})
    labels = explorer.review.state.labels
    assert labels[pieces[0][0]] == question.group
    assert labels[pieces[1][0]] != question.group
    assert len(event.payload["cannot"]) == 1
    assert event.payload["asked"]["said"] == [True, False, *[True] * (len(pieces) - 2)]
    key = explorer.questions[0].key
    with pytest.raises(SettingError, match="does not have"):
        explorer.act("answer", {"key": key, "verdict": "same", "except": [10**6]})


def test_no_answered_decision_is_asked_again_in_another_question(explorer):
    """Forty answers of every kind: no later question contradicts or repeats one of them."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        if not explorer.questions:
            break
        question = explorer.questions[0]
        verdict = str(rng.choice(["same", "different"]))
        explorer.act("answer", {"key": question.key, "verdict": verdict})
        state = explorer.review.state
        must, cannot = state.constraints()
        apart = {tuple(sorted(state.labels[list(pair)])) for pair in cannot}
        for one in explorer.questions:
            _, pieces = explorer.find_question(one.key)
            for number, rows in zip(one.pieces, pieces, strict=True):
                if one.is_leaving:
                    inside = set(rows.tolist())
                    assert not any((a in inside) != (b in inside) for a, b in must
                                   if state.labels[a] == one.group)  # fmt: skip
                else:
                    assert tuple(sorted((one.group, number))) not in apart


def test_the_queue_after_many_answers_is_that_of_a_fresh_start(explorer):
    """What is found again for changed groups alone equals what is found for all."""
    for verdict in ("different", "same", "different", "same"):
        explorer.act("answer", {"key": explorer.questions[0].key, "verdict": verdict})
    explorer.act("move", {"rows": [5, 17]})
    again = open_explorer(explorer.run.folder)
    assert [(one.key, one.gain) for one in again.questions] == [
        (one.key, one.gain) for one in explorer.questions
    ]
    again.store.close()


def test_answers_change_how_probable_the_others_of_their_kind_are(explorer):
    before = {one.key: one.same[0] for one in explorer.questions if one.kind == "pair"}
    question = first_of(explorer, "pair")
    explorer.act("answer", {"key": question.key, "verdict": "different"})
    after = {one.key: one.same[0] for one in explorer.questions if one.kind == "pair"}
    both = set(before) & set(after)
    assert both
    assert all(after[key] < before[key] for key in both)


def test_junk_is_not_asked_about(explorer):
    group = explorer.questions[0].group
    explorer.act("junk", {"group": group, "junk": True})
    for question in explorer.questions:
        assert question.group != group
        assert question.is_leaving or group not in question.pieces


def test_a_run_without_a_graph_asks_about_its_merges(make_run):
    explorer = open_explorer(make_run("bare", bare=True))
    question = explorer.questions[0]
    assert question.kind == "link"
    _, (rows,) = explorer.find_question(question.key)
    explorer.act("answer", {"key": question.key, "verdict": "different"})
    labels = explorer.review.state.labels
    assert (labels[rows] != question.group).all()
    assert question.key not in [one.key for one in explorer.questions]
    explorer.store.close()


@pytest.mark.parametrize(
    "key", ["", "part", "part-1", "part-1--2", "part-99-0", "pair-1-1", "pair-0-99999", "x-1-2",
            "part-٣-1", "pair-1-2-3", "pair-1-2.2", "odd-0-99999999", "link-0-99.0", "pair-1-."]
)  # fmt: skip
def test_an_unknown_key_is_refused(explorer, key):
    with pytest.raises(SettingError):
        explorer.act("answer", {"key": key, "verdict": "same"})
    assert explorer.review.log == []


def test_a_key_names_its_question(explorer):
    for question in explorer.questions[:20]:
        parsed = parse_question(question.key)
        assert (parsed.kind, parsed.group, parsed.pieces) == (
            question.kind, question.group, question.pieces
        )  # fmt: skip
