import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from hilander.errors import FileFormatError
from hilander.io.files import read_embeddings

N, DIM = 9, 12


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)


def parquet(path, columns):
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=4)
    return path


def text(path, *lines, end="\n"):
    path.write_text(end.join(lines) + end, encoding="utf-8")
    return path


def spread(features, prefix="f", first=0, form="{prefix}{number}"):
    return {
        form.format(prefix=prefix, number=first + at): column
        for at, column in enumerate(features.T)
    }


def write(folder, suffix, columns):
    """The same columns as any kind of table."""
    if suffix == ".parquet":
        return parquet(folder / "a.parquet", columns)
    separator = "\t" if suffix == ".tsv" else ","
    rows = zip(*(map(str, np.asarray(values).tolist()) for values in columns.values()), strict=True)
    return text(folder / f"a{suffix}", separator.join(columns), *map(separator.join, rows))


SUFFIXES = [".parquet", ".csv", ".tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("prefix", ["f", "emb_", "", "vector.", "clip 2 - "])
@pytest.mark.parametrize("first", [0, 1])
def test_numbered_columns_are_one_embedding(tmp_path, features, suffix, prefix, first):
    columns = {"id": [f"p{i}" for i in range(N)], **spread(features, prefix, first)}
    # Beyond ten columns the order of their names is not the order of their numbers.
    names = ["label", *sorted(columns, reverse=True)]
    columns["label"] = list(range(N))
    file = read_embeddings(write(tmp_path, suffix, {name: columns[name] for name in names}))
    np.testing.assert_array_equal(file.features, features)
    assert file.features.dtype == np.float32
    assert file.ids.tolist() == columns["id"]
    assert file.labels.tolist() == columns["label"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_column_numbers_may_have_leading_zeros(tmp_path, features, suffix):
    columns = spread(features, "dim", form="{prefix}{number:03d}")
    np.testing.assert_array_equal(
        read_embeddings(write(tmp_path, suffix, columns)).features, features
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_prefix_chooses_one_of_several_groups(tmp_path, features, suffix):
    who = np.arange(N)
    columns = {
        **spread(features, "a_"),
        **spread(-features, "b_"),
        "key": who,
        "y_0": who,
        "y_1": who,
    }
    path = write(tmp_path, suffix, columns)
    with pytest.raises(FileFormatError, match=r"a_0 … a_11, b_0 … b_11, y_0 … y_1.*features="):
        read_embeddings(path)
    file = read_embeddings(path, features="b_", ids="key", labels="y_1")
    np.testing.assert_array_equal(file.features, -features)
    np.testing.assert_array_equal(file.ids, who)
    np.testing.assert_array_equal(file.labels, who)
    for name in ("c_", "b"):
        with pytest.raises(FileFormatError, match=rf"has no column.* {name!r}|{name}0.*a_0, a_1"):
            read_embeddings(path, features=name)
    with pytest.raises(FileFormatError, match="no column 'where', it has a_0"):
        read_embeddings(path, features="a_", ids="where")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_column_named_as_ids_or_labels_is_not_a_feature(tmp_path, features, suffix):
    columns = {**spread(features), "y_0": np.arange(N), "y_1": np.arange(N)}
    file = read_embeddings(write(tmp_path, suffix, columns), labels="y_1")
    np.testing.assert_array_equal(file.features, features)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbered_columns_of_text_are_not_features(tmp_path, features, suffix):
    columns = {"name1": ["x"] * N, "name2": ["y"] * N, **spread(features)}
    np.testing.assert_array_equal(
        read_embeddings(write(tmp_path, suffix, columns)).features, features
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_gap_or_a_repeated_number_is_named(tmp_path, features, suffix):
    columns = spread(features)
    del columns["f3"]
    with pytest.raises(FileFormatError, match="column f4 where f3 was expected"):
        read_embeddings(write(tmp_path, suffix, columns))
    columns["f04"] = features[:, 3]
    with pytest.raises(FileFormatError, match="where f3 was expected"):
        read_embeddings(write(tmp_path, suffix, columns))
    with pytest.raises(FileFormatError, match="column f5 where f1 was expected"):
        read_embeddings(write(tmp_path, suffix, spread(features, first=5)))


def test_wide_parquet_is_read_in_batches(tmp_path, features, monkeypatch):
    monkeypatch.setattr("hilander.io.parquet._BATCH_VALUES", 2 * DIM)
    columns = spread(features)
    path = parquet(tmp_path / "a.parquet", columns)
    np.testing.assert_array_equal(read_embeddings(path).features, features)
    columns["f2"] = pa.array([*features[:7, 2], None, 1.0])
    with pytest.raises(FileFormatError, match="column 'f2' row 7 is null"):
        read_embeddings(parquet(tmp_path / "b.parquet", columns))


def test_wide_parquet_has_a_type_that_holds_all_columns(tmp_path, features):
    half = spread(features.astype(np.float16))
    assert read_embeddings(parquet(tmp_path / "a.parquet", half)).features.dtype == np.float16
    half["f1"] = np.arange(N) + 2**40
    file = read_embeddings(parquet(tmp_path / "b.parquet", half))
    np.testing.assert_array_equal(file.features[:, 1], half["f1"])


def test_a_column_of_lists_is_preferred_to_numbered_columns(tmp_path, features):
    columns = {"v": features.tolist(), **spread(-features)}
    path = parquet(tmp_path / "a.parquet", columns)
    np.testing.assert_allclose(read_embeddings(path).features, features)
    np.testing.assert_array_equal(read_embeddings(path, features="f").features, -features)


def test_text_among_numbered_columns_of_parquet_is_refused(tmp_path, features):
    columns = {**spread(features), "f5": ["x"] * N}
    with pytest.raises(FileFormatError, match="column 'f5' holds string, expected numbers"):
        read_embeddings(parquet(tmp_path / "a.parquet", columns))
    empty = parquet(tmp_path / "b.parquet", spread(features[:0]))
    with pytest.raises(FileFormatError, match="has no rows"):
        read_embeddings(empty)


def test_a_csv_without_header_is_all_features(tmp_path):
    path = text(tmp_path / "a.csv", "1,-2.5,3e-2", "4,5, 6 ", "", "nan,inf,0", end="\r\n")
    file = read_embeddings(path)
    expected = np.array([[1, -2.5, 0.03], [4, 5, 6], [np.nan, np.inf, 0]], dtype=np.float32)
    np.testing.assert_array_equal(file.features, expected)
    assert file.ids is None
    assert file.labels is None
    with pytest.raises(FileFormatError, match=r"no header .* got the name 'id'"):
        read_embeddings(path, ids="id")


@pytest.mark.parametrize("index", [True, False])
def test_the_default_output_of_pandas_is_read(tmp_path, features, index):
    frame = pd.DataFrame(features)
    frame.to_csv(tmp_path / "a.csv", index=index)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "a.csv").features, features)
    frame.columns = frame.columns.astype(str)
    frame.to_parquet(tmp_path / "a.parquet", index=index)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "a.parquet").features, features)


def test_a_first_line_that_counts_is_a_header_unless_it_may_be_an_embedding(tmp_path):
    for lines, n_rows in [
        (["0,1,2,3", "5,6,7,8"], 1),
        (["1,2,3,4", "5,6,7,8"], 1),
        (["0,1,2,4", "5,6,7,8"], 2),
        (["0,1", "0.5,0.6"], 1),
        (["0,1", "1,0"], 2),
        (["0,1"], 1),
    ]:
        assert len(read_embeddings(text(tmp_path / "a.csv", *lines)).features) == n_rows, lines


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_first_line(tmp_path, suffix, separator):
    rows = [["id", '"a, b; c"', "label", "f0", "f1"], ["7", "x", "a", "1", "2"]]
    rows.append(["8", "y", "b", "3", "4e-1"])
    file = read_embeddings(text(tmp_path / f"a{suffix}", *map(separator.join, rows)))
    np.testing.assert_array_equal(file.features, np.float32([[1, 2], [3, 0.4]]))
    assert file.ids.tolist() == [7, 8]
    assert file.labels.tolist() == ["a", "b"]
    plain = text(tmp_path / f"b{suffix}", "", f"0.5{separator}-2", f"1e-1{separator}3")
    np.testing.assert_array_equal(
        read_embeddings(plain).features, np.float32([[0.5, -2], [0.1, 3]])
    )


def test_the_default_output_of_numpy_is_read(tmp_path, features):
    np.savetxt(tmp_path / "a.csv", features)
    np.testing.assert_array_equal(read_embeddings(tmp_path / "a.csv").features, features)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["0,5;-1,25;3", "1;2;3"],
            "line 1 has the number 0,5, expected a decimal point; write 0.5",
        ),
        (["id;f0;f1", "a;1;2", "b;1;,5"], "line 3 has in column 'f1' the number ,5, expected a"),
        (["id;f0;f1", "a;0,5;0,1"], "line 2 has in column 'f0' the number 0,5.*write 0.5"),
        (["f0  f1", "1  2"], r"separated by a comma, a semicolon, a tab or \|;"),
    ],
)
def test_decimal_commas_and_other_separators_are_named(tmp_path, lines, message):
    with pytest.raises(FileFormatError, match=message):
        read_embeddings(text(tmp_path / "a.csv", *lines))


def test_ids_with_leading_zeros_stay_text(tmp_path):
    path = text(tmp_path / "a.csv", "\ufeffID,label,f0,f1", "007,01,1,2", "08,2,3,4")
    file = read_embeddings(path)
    assert file.ids.tolist() == ["007", "08"]
    assert file.labels.tolist() == ["01", "2"]
    np.testing.assert_array_equal(file.features, [[1, 2], [3, 4]])


def test_a_long_csv_is_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("hilander.io.wide_tables._BLOCK_BYTES", 64)
    lines = [f"p{row},{row},{row + 0.5}" for row in range(100)]
    file = read_embeddings(text(tmp_path / "a.csv", "id,f0,f1", *lines))
    np.testing.assert_array_equal(file.features[:, 0], np.arange(100))
    assert file.ids.tolist() == [f"p{row}" for row in range(100)]
    with pytest.raises(FileFormatError, match="line 102 has 'x' in column 'f1'"):
        read_embeddings(text(tmp_path / "b.csv", "id,f0,f1", *lines, "p,1,x"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["f0,f1", "1,2", "3,4,5"], "line 3 has 3 cells where the first line has 2"),
        (["f0,f1", "1"], "line 2 has 1 cells"),
        (["7,2", "", "3,x"], "line 3 has 'x' in column '1', expected a number"),
        (["f0,f1", "1,2", "3,"], "line 3 has no value in column 'f1'"),
        (["f0,f1", "NA,2"], "line 2 has 'NA' in column 'f0'"),
        (["id,f0,f1", "a,1,2", " ,3,4"], "line 3 has no value in column 'id'"),
        (["label,f0,f1", ",1,2"], "line 2 has no value in column 'label'"),
        (["id,label", "1,2"], r"no columns of numbers such as f0, .*\(its columns: id, label\)"),
        (["a.jpg,0.1,0.2", "b.jpg,0.3,0.4"], "omit the header if"),
        (["these are words", "and no numbers"], "no columns of numbers"),
        (["f0,f1"], "no rows below its header"),
        (["0,1,2,3"], "no rows below its header"),
        (["3", "4"], "one column of numbers.*file of labels"),
        ([], "is empty, expected embeddings"),
        (["id,f0,f1", "\0,1,2", "x"], "line 3 has 1 cells"),
        (["\0\0", "1"], "cannot be read as a table"),
    ],
)
def test_a_csv_without_embeddings_is_refused(tmp_path, lines, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_embeddings(text(tmp_path / "a.csv", *lines))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_utf8_are_refused(tmp_path):
    for content in (b"\xff\xfe1,2\n", b"id,f0,f1\n" + b"a,1,2\n" * 5_000 + b"\xe4,1,2\n"):
        (tmp_path / "a.csv").write_bytes(content)
        with pytest.raises(FileFormatError, match="cannot be read as a table"):
            read_embeddings(tmp_path / "a.csv")


def test_an_error_does_not_show_all_of_many_names(tmp_path):
    names = ",".join(f"x{at}y" for at in range(600))
    with pytest.raises(FileFormatError, match=r"x0y, .*x7y, … \(600 in all\)"):
        read_embeddings(text(tmp_path / "a.csv", names, ",".join(["1"] * 600)))
