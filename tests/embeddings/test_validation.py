import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
import torch

from hilander.arrays.rows import row_blocks
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError


@pytest.fixture
def small():
    # Small whole numbers: every number type holds them exactly.
    return np.random.default_rng(0).integers(0, 2, size=(7, 5)).astype(np.float32)


FORMS = {
    "float16": lambda x: x.astype(np.float16),
    "float64": lambda x: x.astype(np.float64),
    "long double": lambda x: x.astype(np.longdouble),
    "int8": lambda x: x.astype(np.int8),
    "uint64": lambda x: x.astype(np.uint64),
    "bool": lambda x: x.astype(bool),
    "big endian": lambda x: x.astype(">f4"),
    "fortran order": np.asfortranarray,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed twice": lambda x: x[::-1].copy()[::-1],
    "objects": lambda x: x.astype(object),
    "list of lists": lambda x: x.tolist(),
    "list of arrays": list,
    "array of lists": lambda x: pd.Series(x.tolist()).to_numpy(),
    "data frame": pd.DataFrame,
    "data frame of nullable integers": lambda x: pd.DataFrame(x.astype(int)).astype("Int64"),
    "series of lists": lambda x: pd.Series(x.tolist()),
    "data frame of one column of lists": lambda x: pd.DataFrame({"v": x.tolist()}),
    "torch": torch.tensor,
    "torch with gradient": lambda x: torch.tensor(x, requires_grad=True),
    "torch bfloat16": lambda x: torch.tensor(x).bfloat16(),
    "list of tensors": lambda x: [torch.tensor(row) for row in x],
    "arrow lists": lambda x: pa.array(x.tolist(), pa.list_(pa.float32())),
    "arrow half lists": lambda x: pa.array(list(x.astype(np.float16)), pa.list_(pa.float16())),
    "arrow large lists": lambda x: pa.array(x.tolist(), pa.large_list(pa.float64())),
    "arrow fixed lists": lambda x: pa.array(x.tolist(), pa.list_(pa.float64(), 5)),
    "arrow slice": lambda x: pa.array([[9.0] * 5, *x.tolist()], pa.list_(pa.float32(), 5))[1:],
    "arrow chunks": lambda x: pa.chunked_array([x[:3].tolist(), x[3:].tolist()]),
    "arrow tensors": lambda x: pa.FixedShapeTensorArray.from_numpy_ndarray(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_numbers_gives_the_same_array(form, small):
    result = as_embeddings(FORMS[form](small))
    assert result.dtype == np.float32
    assert result.dtype.isnative
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, small)


def test_a_ready_array_is_not_copied(small):
    assert as_embeddings(small) is small


def test_a_ready_memmap_is_not_copied(tmp_path, small):
    np.save(tmp_path / "x.npy", small)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(as_embeddings(mapped), mapped)


def test_the_input_is_not_changed(small):
    doubles = small.astype(np.float64)
    before = doubles.copy()
    as_embeddings(doubles)[:] = 9
    np.testing.assert_array_equal(doubles, before)


def test_blocks_cover_all_rows_once():
    for n_rows, n_columns in [(0, 3), (1, 1), (10, 1 << 22), (3_000_001, 7)]:
        rows = [(block.start, block.stop) for block in row_blocks(n_rows, n_columns)]
        ends = [0, *(stop for _, stop in rows)]
        assert [start for start, _ in rows] == ends[:-1]
        assert ends[-1] == n_rows


def _with(x, row, value):
    x = x.astype(np.float64)
    x[row, 2] = value
    return x


REFUSED = {
    "one-dimensional": (
        lambda x: x[0],
        "Reshape your data.*reshape\\(-1, 1\\).*reshape\\(1, -1\\)",
    ),
    "a number": (lambda x: np.float32(1), "got scalar array.*Reshape your data"),
    "three-dimensional": (
        lambda x: x[None],
        "Expected 2D array, got 3D.*reshape\\(len\\(X\\), -1\\)",
    ),
    "a series of numbers": (lambda x: pd.Series(x[0]), "Reshape your data"),
    "no rows": (lambda x: x[:0], "0 sample\\(s\\).*minimum of 1 is required"),
    "an empty list": (lambda x: [], "Reshape your data"),
    "no features": (
        lambda x: x[:, :0],
        r"0 feature\(s\) \(shape=\(7, 0\)\) while a minimum of 1 is required\.",
    ),
    "complex": (lambda x: x.astype(complex), "Complex data not supported"),
    "boxed complex": (lambda x: x.astype(complex).astype(object), "Complex data not supported"),
    "complex tensor": (lambda x: torch.tensor(x + 0j), "Complex data not supported"),
    "text": (lambda x: x.astype(str), "dtype <U.*expected numbers"),
    "boxed text": (lambda x: x.astype(str).astype(object), "holds text"),
    "a frame with a name": (
        lambda x: pd.DataFrame(x).assign(name="a"),
        r"column 'name' holds text \('a'\), .*X\.drop\(columns=\['name'\]\)",
    ),
    "a frame with several columns of no numbers": (
        lambda x: pd.DataFrame(x).assign(a=[None, *"bcdefg"], b=pd.Timestamp("2020-01-01")),
        r"column 'a' holds text \('b'\), .*X\.drop\(columns=\['a', 'b'\]\)",
    ),
    "a frame of categories": (
        lambda x: pd.DataFrame(x).assign(kind=pd.Categorical(["a"] * len(x))),
        "column 'kind' holds text",
    ),
    "a frame of dates": (
        lambda x: pd.DataFrame(x).assign(day=pd.Timestamp("2020-01-01")),
        "column 'day' holds Timestamp, expected numbers",
    ),
    "a frame of ids and lists": (
        lambda x: pd.DataFrame({"id": ["a"] * len(x), "v": x.tolist()}),
        r"lists in the column 'v' beside 'id', .* pass X\['v'\]",
    ),
    "a frame of numbered rows and lists": (
        lambda x: pd.DataFrame({"n": range(len(x)), "v": list(x)}),
        r"lists in the column 'v' beside 'n', .* pass X\['v'\]",
    ),
    "a frame of several columns of lists": (
        lambda x: pd.DataFrame({"u": x.tolist(), "v": x.tolist()}),
        r"lists in the column 'u', 'v', expected one column .* pass X\['u'\]",
    ),
    "missing values": (lambda x: [[2.0, 3.0], [None, 1.0]], "row 1 holds NaN"),
    "objects": (lambda x: [[object(), 1.0], [2.0, 3.0]], "not numbers"),
    "ragged lists": (lambda x: [[1.0, 2.0], [3.0, 4.0], [1.0]], "row 2 has 1 values.*row 0 has 2"),
    "ragged series": (lambda x: pd.Series([[1.0, 2.0], [1.0]]), "row 1 has 1 values"),
    "ragged arrow": (lambda x: pa.array([[1.0, 2.0], [1.0]]), "row 1 has 1 values.*row 0 has 2"),
    "ragged arrow chunks": (
        lambda x: pa.chunked_array([[[1.0, 2.0], [1.0, 2.0]], [[1.0]]]),
        "row 2 has 1 values",
    ),
    "null arrow row": (lambda x: pa.array([[1.0], None, None]), "row 1 is null \\(2 such rows\\)"),
    "null arrow value": (lambda x: pa.array([[1.0, 2.0], [1.0, None]]), "row 1 holds a null"),
    "arrow text": (lambda x: pa.array(["a"]), "type string, expected lists of numbers"),
    "arrow numbers": (lambda x: pa.array([1.0]), "Reshape your data"),
    "arrow table": (lambda x: pa.table({"a": [1.0]}), "pyarrow Table, expected one column"),
    "sparse": (scipy.sparse.csr_array, "Sparse data is not supported"),
    "sparse tensor": (lambda x: torch.tensor(x).to_sparse(), "tensor that numpy cannot hold"),
    "masked": (lambda x: np.ma.masked_equal(x + np.eye(7, 5) * 9, 9), "row \\d has masked"),
    "nothing": (lambda x: None, "is a NoneType, expected an array"),
    "a path": (lambda x: "x.npy", "is a str, expected an array"),
    "dates": (lambda x: x.astype("M8[s]"), "expected numbers"),
    "NaN": (lambda x: _with(x, 4, np.nan), "row 4 holds NaN"),
    "infinity": (lambda x: _with(x, 3, -np.inf), "row 3 holds infinity .*NaN"),
    "an overflow": (lambda x: _with(x, 5, 1e39), "row 5 holds 1e\\+39, a value too large.*float32"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_invalid_embeddings_are_refused(form, small):
    make, message = REFUSED[form]
    with pytest.raises(EmbeddingError, match=message):
        as_embeddings(make(small))


def test_the_first_bad_row_is_named_in_later_blocks(monkeypatch, small):
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 10)
    with pytest.raises(EmbeddingError, match="row 5 holds NaN"):
        as_embeddings(_with(small, [5, 6], np.nan))


@pytest.mark.parametrize("as_stored", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_error_says_how_many_rows_are_not_finite(small, dtype, as_stored, monkeypatch):
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 2 * small.shape[1])
    odd = small.astype(dtype)
    odd[[1, 4], 0] = np.nan
    odd[4, 1] = np.inf  # a row with both counts once
    odd[-1, 2] = -np.inf
    with pytest.raises(
        EmbeddingError, match=r"row 1 holds NaN \(3 rows hold NaN or inf.*those rows"
    ):
        as_embeddings(odd, as_stored=as_stored)
    with pytest.raises(EmbeddingError, match=r"row 1 holds NaN, expected .*drop that row"):
        as_embeddings(odd[:3], as_stored=as_stored)
    if dtype == np.float64:
        odd[0, 0] = 1e39
        with pytest.raises(EmbeddingError, match=r"1e\+39 \(4 rows hold such values, NaN or inf"):
            as_embeddings(odd, as_stored=as_stored)


def test_another_number_of_features_than_the_model_has_is_refused(small):
    assert as_embeddings(small, dim=5) is small
    with pytest.raises(EmbeddingError, match="got 5 features, the model was trained on 128"):
        as_embeddings(small, dim=128)


def test_too_few_rows_are_refused(small):
    assert as_embeddings(small, min_rows=7) is small
    with pytest.raises(EmbeddingError, match=r"7 sample\(s\).*minimum of 8.*as queries"):
        as_embeddings(small, min_rows=8, name="queries")


def test_embeddings_and_io_import_no_heavy_library():
    import subprocess

    code = (
        "import sys, hilander.io, hilander.embeddings.validation;"
        "print([m for m in ('torch', 'pandas', 'pyarrow', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("column", ["id", "label"])
def test_a_number_column_that_is_not_a_feature_is_refused_by_name(column):
    frame = pd.DataFrame(np.eye(4, 3, dtype=np.float32), columns=["f0", "f1", "f2"])
    frame.insert(0, column, range(4))
    with pytest.raises(EmbeddingError, match=rf"column '{column}' among .*drop\(columns="):
        as_embeddings(frame)
    assert as_embeddings(frame.drop(columns=[column])).shape == (4, 3)
