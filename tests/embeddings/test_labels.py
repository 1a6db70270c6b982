import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from hilander.embeddings.labels import check_trainable, encode_labels
from hilander.errors import LabelError

VALUES = [3, 1, 3, 2, 1]
FORMS = {
    "list": VALUES,
    "tuple": tuple(VALUES),
    "array": np.array(VALUES),
    "int32": np.array(VALUES, dtype=np.int32),
    "whole floats": np.array(VALUES, dtype=float),
    "list of whole floats": [float(v) for v in VALUES],
    "integers and whole floats": [3, 1.0, 3.0, 2, 1],
    "objects": np.array(VALUES, dtype=object),
    "numpy scalars": [np.int16(v) for v in VALUES],
    "one column": np.array(VALUES)[:, None],
    "list of one-element lists": [[v] for v in VALUES],
    "series": pd.Series(VALUES, index=list("abcde")),
    "nullable series": pd.Series(VALUES, dtype="Int64"),
    "categories": pd.Series(VALUES, dtype="category"),
    "arrow": pa.array(VALUES),
    "arrow chunks": pa.chunked_array([VALUES[:2], VALUES[2:]]),
    "torch": torch.tensor(VALUES),
    "list of tensors": list(torch.tensor(VALUES)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_labels_gives_the_same_codes(form):
    codes, classes = encode_labels(FORMS[form], n_rows=5)
    assert codes.dtype == np.int64
    assert codes.tolist() == [2, 0, 2, 1, 0]
    assert classes.tolist() == [1, 2, 3]
    assert classes.dtype.kind == "i"


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b"],
        np.array(["b", "a", "b"]),
        pd.Series(["b", "a", "b"]),
        pa.array(["b", "a", "b"]),
        [-1, 5, -1],
        [True, False, True],
        np.array(["2020-01-02", "2020-01-01"], dtype="M8[D]"),
        [2**70, 1, 2**70],
        [1, "a", "1", 1, 2.5],
    ],
)
def test_classes_at_codes_are_the_labels(labels):
    codes, classes = encode_labels(labels)
    assert classes[codes].tolist() == np.array(labels, dtype=object).tolist()
    assert sorted(set(codes.tolist())) == list(range(len(classes)))


def test_mixed_labels_are_ordered_by_type_and_text_and_not_merged():
    codes, classes = encode_labels(["1", 10, 1, "a", 1])
    assert classes.tolist() == [1, 10, "1", "a"]
    assert codes.tolist() == [2, 1, 0, 3, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([1, None, 2], "row 1 is missing"),
        (["a", "b", None, None], r"row 2 is missing \(None; 2 in all\)"),
        ([1.0, 2.0, float("nan")], "row 2 is missing"),
        (np.array([np.nan, 1.0]), "row 0 is missing"),
        (pd.Series([1, None], dtype="Int64"), "row 1 is missing"),
        (pd.Series(["a", None]), "row 1 is missing"),
        (pa.array([1, None]), "row 1 is missing"),
        (np.array(["NaT", "2020"], dtype="M8[D]"), "row 0 is missing"),
        (np.ma.masked_equal([1, 2], 2), "row 1 is missing"),
        ([1.0, 0.5], "row 1 is 0.5, expected a whole number"),
        ([1.0, float("inf")], "row 1 is inf"),
        (np.ones((3, 2)), r"1d array, got an array of shape \(3, 2\)"),
        ([[1, 2], [3, 4]], "y should be a 1d array"),
        ([1, [2, 3]], "row 1 is a list"),
        (np.array([1j]), "dtype complex128"),
        ("abc", "labels are a str"),
        (3, "labels are a int"),
        ([], "got no labels"),
    ],
)
def test_labels_that_cannot_be_identities_are_refused(labels, message):
    with pytest.raises(LabelError, match=message):
        encode_labels(labels)


def test_another_number_of_labels_than_embeddings_is_refused():
    with pytest.raises(LabelError, match="got 90 labels for 100 embeddings"):
        encode_labels(np.zeros(90, dtype=int), n_rows=100)


def test_one_identity_cannot_be_trained_on():
    with pytest.raises(LabelError, match=r"one identity only \(one class\), need at least 2"):
        check_trainable(np.zeros(5, dtype=int))


def test_identities_of_one_embedding_each_cannot_be_trained_on():
    with pytest.raises(LabelError, match="each of the 5 identities has a single embedding"):
        check_trainable(np.arange(5))


def test_two_identities_with_one_pair_can_be_trained_on():
    check_trainable(np.array([0, 0, 1]))
