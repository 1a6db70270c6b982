import errno
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hilander.errors import FileFormatError, LabelError, OutputError
from hilander.io.files import read_embeddings, read_labels, write_table

N, DIM = 9, 4


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)


@pytest.fixture
def labels():
    return np.random.default_rng(1).integers(0, 3, size=N)


def parquet(path, **columns):
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=4)
    return path


def one_line(caught):
    return "\n" not in str(caught.value)


def test_npy_is_mapped_and_not_loaded(tmp_path, features):
    np.save(tmp_path / "a.npy", features)
    file = read_embeddings(tmp_path / "a.npy")
    assert isinstance(file.features, np.memmap)
    np.testing.assert_array_equal(file.features, features)
    assert file.ids is None
    assert file.labels is None
    assert file.source == tmp_path / "a.npy"


@pytest.mark.parametrize("key", ["features", "embeddings", "X", "whatever"])
def test_npz_round_trips(tmp_path, features, labels, key):
    ids = np.array([f"p{i}" for i in range(N)])
    np.savez_compressed(tmp_path / "a.npz", **{key: features, "labels": labels, "ids": ids})
    file = read_embeddings(tmp_path / "a.npz")
    np.testing.assert_array_equal(file.features, features)
    np.testing.assert_array_equal(file.labels, labels)
    np.testing.assert_array_equal(file.ids, ids)


def test_names_choose_arrays_of_an_npz(tmp_path, features, labels):
    np.savez(tmp_path / "a.npz", a=features, b=-features, who=labels, key=np.arange(N))
    file = read_embeddings(tmp_path / "a.npz", features="b", labels="who", ids="key")
    np.testing.assert_array_equal(file.features, -features)
    np.testing.assert_array_equal(file.labels, labels)
    np.testing.assert_array_equal(file.ids, np.arange(N))
    with pytest.raises(FileFormatError, match=r"2 two-dimensional arrays.*a, b, who, key"):
        read_embeddings(tmp_path / "a.npz")
    with pytest.raises(FileFormatError, match="no array 'c', it has a, b, who, key"):
        read_embeddings(tmp_path / "a.npz", features="c")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
@pytest.mark.parametrize(
    "ids",
    [
        np.arange(N, dtype=np.int32),
        np.arange(N, dtype=np.uint64) + 2**63,
        np.array([f"p{i}" for i in range(N)], dtype=object),
        np.arange(N).astype("M8[ms]"),
    ],
    ids=["int32", "uint64", "text", "dates"],
)
def test_parquet_round_trips(tmp_path, features, labels, dtype, ids):
    features = (features * 10).astype(dtype)
    write_table(tmp_path / "a.parquet", {"id": ids, "v": features, "label": labels})
    file = read_embeddings(tmp_path / "a.parquet")
    np.testing.assert_array_equal(file.features, features)
    assert file.features.dtype == features.dtype
    np.testing.assert_array_equal(file.ids, ids)
    assert file.ids.dtype == ids.dtype
    np.testing.assert_array_equal(file.labels, labels)


def test_parquet_is_read_in_batches(tmp_path, features, monkeypatch):
    monkeypatch.setattr("hilander.io.parquet._BATCH_ROWS", 2)
    path = parquet(tmp_path / "a.parquet", v=features.tolist())
    np.testing.assert_allclose(read_embeddings(path).features, features)
    ragged = [*features.tolist()[:8], [1.0]]
    path = parquet(tmp_path / "b.parquet", v=ragged)
    with pytest.raises(FileFormatError, match="row 8 has 1 values"):
        read_embeddings(path)
    path = parquet(tmp_path / "c.parquet", v=[*features.tolist()[:8], None])
    with pytest.raises(FileFormatError, match="row 8 is null"):
        read_embeddings(path)


def test_parquet_columns_are_found_or_named(tmp_path, features):
    lists = features.tolist()
    path = parquet(tmp_path / "a.parquet", a=lists, b=lists, n=list(range(N)), id=[None] * N)
    with pytest.raises(FileFormatError, match=r"several columns of vectors \(a, b\)"):
        read_embeddings(path)
    with pytest.raises(FileFormatError, match="no column 'c', it has a, b, n, id"):
        read_embeddings(path, features="c")
    with pytest.raises(FileFormatError, match="column 'n' holds int64, expected lists"):
        read_embeddings(path, features="n")
    with pytest.raises(FileFormatError, match="column 'id' row 0 is null"):
        read_embeddings(path, features="a")
    file = read_embeddings(path, features="b", ids="n")
    assert file.ids.tolist() == list(range(N))
    path = parquet(tmp_path / "b.parquet", embedding=lists, other=lists)
    np.testing.assert_allclose(read_embeddings(path).features, features)
    with pytest.raises(FileFormatError, match=r"no column of lists of numbers .its columns: x"):
        read_embeddings(parquet(tmp_path / "c.parquet", x=[1.0]))
    empty = parquet(tmp_path / "d.parquet", v=pa.array([], pa.list_(pa.float32())))
    with pytest.raises(FileFormatError, match="has no rows"):
        read_embeddings(empty)


def test_categories_of_parquet_are_read_as_their_values(tmp_path):
    names = pa.array(["b", "a", "b"]).dictionary_encode()
    path = parquet(tmp_path / "a.parquet", label=names)
    assert read_labels(path).tolist() == ["b", "a", "b"]


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_repeated_ids_give_a_warning(tmp_path, suffix):
    path, ids = tmp_path / f"a{suffix}", ["p", "q", "p", "r", "p", "q"]
    if suffix == ".npz":
        np.savez(path, features=np.eye(6), id=ids)
    elif suffix == ".parquet":
        parquet(path, v=np.eye(6).tolist(), id=ids)
    else:
        path.write_text("\n".join(["id,f0,f1", *(f"{one},1,2" for one in ids)]))
    with pytest.warns(
        UserWarning, match="3 of 6 rows have the id .* .'p' occurs 3 times"
    ) as caught:
        file = read_embeddings(path)
    assert file.ids.tolist() == ids
    assert caught[0].filename == __file__


def test_a_pickle_of_the_paper_is_read(tmp_path, features, labels):
    (tmp_path / "a.pkl").write_bytes(pickle.dumps((features, labels)))
    file = read_embeddings(tmp_path / "a.pkl")
    np.testing.assert_array_equal(file.features, features)
    np.testing.assert_array_equal(read_labels(tmp_path / "a.pkl"), labels)
    with pytest.raises(FileFormatError, match="no named columns, got the name 'x'"):
        read_embeddings(tmp_path / "a.pkl", features="x")


@pytest.mark.parametrize("read", [read_embeddings, read_labels])
def test_a_path_that_is_not_a_file_is_refused(tmp_path, read):
    with pytest.raises(FileFormatError, match="is a folder, expected a file"):
        read(tmp_path)
    with pytest.raises(FileFormatError, match=r"no\.npy does not exist"):
        read(tmp_path / "no.npy")
    (tmp_path / "a.parqet").write_text("")
    with pytest.raises(FileFormatError, match=r"expected one of .npy, .*did you mean .parquet\?"):
        read(tmp_path / "a.parqet")
    (tmp_path / "a").write_text("")
    with pytest.raises(FileFormatError, match=r"suffix '\(none\)'"):
        read(tmp_path / "a")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_instead_of_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(FileFormatError, match="is a pipe or a device, expected a file"):
        read_embeddings(tmp_path / "pipe.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_truncated_files_and_other_formats_are_refused_in_one_line(
    tmp_path, features, labels, suffix
):
    path = tmp_path / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, features)
    elif suffix == ".npz":
        np.savez_compressed(path, features=features, labels=labels)
    else:
        write_table(path, {"v": features})
    whole = path.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes(255 - byte for byte in whole[middle:])
    for content in (b"", whole[:3], whole[:middle], whole[:-1], b"<html>" * 99, flipped):
        if content == flipped and suffix == ".npy":
            continue  # plain numbers have no checksum
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=rf"a\{suffix}") as caught:
            read_embeddings(path)
        assert one_line(caught)


def test_objects_in_numpy_files_are_refused(tmp_path):
    boxed = np.array([[1, "a"]], dtype=object)
    np.save(tmp_path / "a.npy", boxed, allow_pickle=True)
    np.savez(tmp_path / "a.npz", features=boxed)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(
            FileFormatError,
            match=r"holds Python objects, expected numbers|cannot be read .*without objects",
        ):
            read_embeddings(tmp_path / name)


def test_features_of_another_shape_or_length_are_refused(tmp_path, features, labels):
    np.save(tmp_path / "a.npy", labels)
    with pytest.raises(FileFormatError, match=r"shape \(9,\).*expected numbers of shape"):
        read_embeddings(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", features=features, labels=labels[:5])
    with pytest.raises(FileFormatError, match=r"labels of shape \(5,\) for 9 embeddings"):
        read_embeddings(tmp_path / "a.npz")


def test_every_form_of_label_file_gives_the_same_labels(tmp_path, labels):
    np.save(tmp_path / "a.npy", labels)
    np.save(tmp_path / "b.npy", labels[:, None])
    np.savez(tmp_path / "a.npz", labels=labels, features=np.ones((N, 2)))
    write_table(tmp_path / "a.parquet", {"label": labels})
    write_table(tmp_path / "a.csv", {"id": np.arange(N), "label": labels})
    lines = [str(label) for label in labels]
    (tmp_path / "b.csv").write_text("\n".join(lines))
    (tmp_path / "c.csv").write_text("\ufeffperson\r\n" + "\r\n".join(lines) + "\r\n")
    (tmp_path / "d.tsv").write_text(
        "id\tname\n" + "".join(f"{i}\t{x}\n" for i, x in enumerate(lines))
    )
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 9
    for name in names:
        got = read_labels(tmp_path / name, n_rows=N)
        assert got.dtype.kind == "i", name
        np.testing.assert_array_equal(got, labels, err_msg=name)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_labels_are_joined_by_id(tmp_path, labels, suffix):
    ids = np.array([f"p{i}" for i in range(N)])
    order = np.random.default_rng(2).permutation(N)
    path = tmp_path / f"a{suffix}"
    if suffix == ".npz":
        np.savez(path, ids=ids[order], labels=labels[order])
    elif suffix == ".tsv":
        rows = zip(ids[order], labels[order], strict=True)
        path.write_text("".join(f"{key}\t{label}\n" for key, label in rows))
    else:
        write_table(path, {"id": ids[order], "label": labels[order]})
    np.testing.assert_array_equal(read_labels(path, ids=ids), labels)
    np.testing.assert_array_equal(read_labels(path, ids=ids[:4], n_rows=4), labels[:4])
    with pytest.raises(LabelError, match=r"id q has no label .1 of 2 ids"):
        read_labels(path, ids=np.array(["p1", "q"]))


def test_number_ids_match_their_text(tmp_path):
    (tmp_path / "a.csv").write_text("id,label\n2,b\n1,a\n")
    assert read_labels(tmp_path / "a.csv", ids=np.array([1, 2])).tolist() == ["a", "b"]


def test_an_id_with_two_labels_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,label\n1,a\n1,a\n2,b\n")
    assert read_labels(path, ids=np.array([1, 2])).tolist() == ["a", "b"]
    path.write_text("id,label\n1,a\n1,b\n")
    with pytest.raises(LabelError, match="id 1 has the labels a and b"):
        read_labels(path, ids=np.array([1]))


def test_a_named_column_of_a_csv_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('who,where\n"Smith, J",x\nJones,y\n')
    assert read_labels(path, column="who").tolist() == ["Smith, J", "Jones"]
    with pytest.raises(FileFormatError, match="no column 'what', it has who, where"):
        read_labels(path, column="what")
    with pytest.raises(FileFormatError, match=r"has 2 columns .*name the column"):
        read_labels(path)


@pytest.mark.parametrize(
    ("lines", "column"),
    [
        (["id;label", "p;x", "q;y"], None),
        (['"label"|"id"', "x|p", "y|q"], None),
        (["key\twho", "p\tx", "q\ty"], "who"),
    ],
)
def test_the_separator_is_found_in_the_names_of_columns(tmp_path, lines, column):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    assert read_labels(path, column=column).tolist() == ["x", "y"]


def test_labels_may_hold_other_separators(tmp_path):
    path = tmp_path / "a.csv"
    for names in (["a; b", "c; d"], ["a|b", "c|d"], ["1 2", "3 4"]):
        path.write_text("\n".join(names))
        assert read_labels(path).tolist() == names


def test_leading_zeros_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("007\n7\n")
    assert read_labels(tmp_path / "a.txt").tolist() == ["007", "7"]


def test_a_first_line_that_is_a_label_is_not_taken_for_a_header(tmp_path):
    (tmp_path / "a.txt").write_text("ann\n1\n2\n")
    assert read_labels(tmp_path / "a.txt", n_rows=3).tolist() == ["ann", "1", "2"]
    assert read_labels(tmp_path / "a.txt", n_rows=2).tolist() == [1, 2]
    assert read_labels(tmp_path / "a.txt").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", FileFormatError, "is empty"),
        (b"label\na\n\xff\n", FileFormatError, "cannot be read as text"),
        (b"id,label\n1,a\n2\n", FileFormatError, "row 2 has 1 columns where row 0 has 2"),
    ],
)
def test_damaged_csv_is_refused(tmp_path, content, error, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        read_labels(tmp_path / "a.csv")
    assert one_line(caught)


def test_another_number_of_labels_than_embeddings_is_refused(tmp_path, labels):
    np.save(tmp_path / "a.npy", labels)
    with pytest.raises(LabelError, match="got 9 labels for 100 embeddings"):
        read_labels(tmp_path / "a.npy", n_rows=100)


def test_a_file_without_labels_is_refused(tmp_path, features):
    np.savez(tmp_path / "a.npz", features=features)
    with pytest.raises(FileFormatError, match="has no labels"):
        read_labels(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", features)
    with pytest.raises(FileFormatError, match=r"labels of shape \(9, 4\), expected one column"):
        read_labels(tmp_path / "a.npy")


def test_a_csv_table_quotes_separators_and_quotes(tmp_path):
    write_table(tmp_path / "a.csv", {"id": np.array(["a,b", 'c"']), "label": np.array([1, 2])})
    assert (tmp_path / "a.csv").read_text() == 'id,label\n"a,b",1\n"c""",2\n'


def test_tables_that_a_format_cannot_hold_are_refused(tmp_path, features):
    with pytest.raises(OutputError, match=r"suffix '.xlsx', expected one of .parquet, .csv"):
        write_table(tmp_path / "a.xlsx", {"a": np.ones(2)})
    for columns in ({"a": features}, {"a": np.ones(2), "b": np.ones(3)}, {}):
        with pytest.raises(OutputError, match="cannot hold columns of shapes"):
            write_table(tmp_path / "a.csv", columns)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_full_disk_leaves_the_old_table(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    write_table(path, {"a": np.arange(3)})
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="disk is full"):
        write_table(path, {"a": np.arange(5)})
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
