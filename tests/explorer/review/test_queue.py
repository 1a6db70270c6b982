"""The queue of questions."""

import pytest

from hilander.errors import SettingError
from hilander.explorer.review.queue import find_separated_groups, is_open


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
