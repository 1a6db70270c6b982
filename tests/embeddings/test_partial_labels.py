"""Labels of which some are unknown."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hilander.embeddings.labels import encode_labels
from hilander.embeddings.partial_labels import encode_known, encode_partly, fill_empty
from hilander.errors import LabelError


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "", "a", " ", "b"],
        ["b", None, "a", float("nan"), "b"],
        np.array(["b", "", "a", "", "b"]),
        pd.Series(["b", None, "a", None, "b"]),
        pa.array(["b", None, "a", None, "b"]),
        [7.0, float("nan"), 2.0, float("nan"), 7.0],
        np.ma.masked_equal([7, 9, 2, 9, 7], 9),
        pd.Series([7, None, 2, None, 7], dtype="Int64"),
    ],
)
def test_empty_labels_of_any_kind_are_unknown(labels):
    codes, what = encode_partly(labels, 5)
    assert codes.tolist() == [1, -1, 0, -1, 1]
    assert what == "empty, NaN or None"
    with pytest.warns(UserWarning, match="2 of 5 labels are empty, NaN or None, which means"):
        known_codes, known = encode_known(labels, 5)
    assert known_codes.tolist() == [1, 0, 1]
    assert known.tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("labels", [["-1", "b", "a", "b"], np.array(["-1", "4", "3", "4"])])
def test_the_text_minus_one_is_unknown_with_a_warning_that_says_so(labels):
    with pytest.warns(UserWarning, match="1 of 4 labels are the text '-1', which means unknown"):
        codes, _ = encode_known(labels, 4)
    assert codes.tolist() == [1, 0, 1]


def test_a_class_between_two_others_may_be_the_unknown_one():
    codes, _ = encode_partly(["#", "-1", "a", "#"], 4)
    assert codes.tolist() == [0, -1, 1, 0]


def test_both_kinds_of_unknown_are_named():
    _, what = encode_partly([-1, None, 3, 4], 4)
    assert what == "-1 or empty, NaN or None"


def test_all_empty_is_too_few():
    with pytest.raises(LabelError, match=r"3 of 3 labels are empty.*need at least 2 identities"):
        encode_known(["", None, ""], 3)


def test_another_number_of_labels_is_refused():
    with pytest.raises(LabelError, match="got 3 labels for 5 embeddings"):
        encode_partly(["a", "b", None], 5)


@pytest.mark.parametrize(
    "labels",
    [[-1, 7, 0, -1, 7], np.array([-1.0, 7, 0, -1, 7]), pd.Series([-1, 7, 0, -1, 7], dtype="Int64")],
)
def test_labels_of_minus_one_are_unknown(labels):
    with pytest.warns(UserWarning, match="2 of 5 labels are -1, which means unknown"):
        codes, known = encode_known(labels, 5)
    assert codes.tolist() == [1, 0, 1]
    assert known.tolist() == [False, True, True, False, True]


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1, 2, 1],
        [-1, -2, 5, 6],
        [-1, -2, -2, -1],
        [-2, 5, 6, 5],
        ["-1", "-2", "0", "1"],
        [-1, "a", "b", "b"],
    ],
)
def test_other_labels_are_all_identities(labels):
    codes, known = encode_known(labels, 4)
    assert codes.tolist() == encode_labels(labels)[0].tolist()
    assert known == slice(None)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([-1, 7, 7, -1, -1], "3 of 5 labels are -1, which means unknown, and the other 2 name one"),
        ([-1.0, 0, 0, 0, 0], "1 of 5 labels are -1.*one identity only, 0; need at least 2"),
        ([-1] * 5, "5 of 5 labels are -1, which means unknown; need at least 2 identities"),
    ],
)
def test_unknown_points_are_not_a_second_identity(labels, message):
    with pytest.raises(LabelError, match=f"{message}.*if -1 is an identity, give it another"):
        encode_known(labels, 5)


def test_filled_labels_are_text_with_empty_text_for_unknown_ones():
    assert fill_empty(np.array([7.0, np.nan, 2.0])).tolist() == ["7", "", "2"]
    assert fill_empty(np.array(["b", None], dtype=object)).tolist() == ["b", ""]
    whole = np.array([1, -1])
    assert fill_empty(whole) is whole
