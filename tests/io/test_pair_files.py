"""Pairs of ids from files, and columns of files of embeddings."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hilander.errors import FileFormatError, MissingFileError
from hilander.io.pair_files import PairFile, read_pairs
from hilander.io.tables import read_column

ROWS = [("a", "b", "must"), ("c", "d", "cannot"), ("=1", "007", "must")]
FOUND = PairFile(must=[("a", "b"), ("=1", "007")], cannot=[("c", "d")])


def write(path, rows, header=("id_a", "id_b", "link")):
    if path.suffix == ".json":
        path.write_text(json.dumps([dict(zip(header, row, strict=True)) for row in rows]))
    elif path.suffix == ".parquet":
        columns = zip(*rows, strict=True)
        pyarrow.parquet.write_table(pa.table(dict(zip(header, columns, strict=True))), path)
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        lines = ([header] if header else []) + [
            [f"'{c}" if c[0] == "=" else c for c in r] for r in rows
        ]
        path.write_text("".join(separator.join(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".parquet"])
def test_pairs_are_read_as_the_explorer_exports_them(tmp_path, suffix):
    assert read_pairs(write(tmp_path / f"pairs{suffix}", ROWS)) == FOUND


def test_two_columns_without_names_are_plain_pairs(tmp_path):
    path = write(tmp_path / "pairs.csv", [row[:2] for row in ROWS], header=None)
    assert read_pairs(path).plain == [("a", "b"), ("c", "d"), ("=1", "007")]
    np.save(tmp_path / "rows.npy", [[0, 5], [2, 3]])
    assert read_pairs(tmp_path / "rows.npy").plain == [("0", "5"), ("2", "3")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id_a,id_b,link\na,b,perhaps\n", "has the link 'perhaps', expected must or cannot"),
        ("id_a,link\na,must\n", "expected id_a and id_b"),
        ("a,b\nc\n", "pair 2 has 1 columns, expected two ids"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(tmp_path, text, message):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_pairs(path)


def test_a_missing_or_foreign_file_is_refused(tmp_path):
    with pytest.raises(MissingFileError, match="does not exist"):
        read_pairs(tmp_path / "pairs.csv")
    (tmp_path / "pairs.doc").write_text("a,b")
    with pytest.raises(FileFormatError, match=r"has the suffix '\.doc'"):
        read_pairs(tmp_path / "pairs.doc")
    (tmp_path / "pairs.json").write_text('{"a": 1}')
    with pytest.raises(FileFormatError, match="not a list of objects"):
        read_pairs(tmp_path / "pairs.json")


def test_a_column_is_read_from_each_kind_of_file(tmp_path):
    values = ["p1", "", "p2"]
    (tmp_path / "e.csv").write_text("photo,f0\n" + "".join(f"{one},1\n" for one in values))
    pyarrow.parquet.write_table(pa.table({"photo": ["p1", None, "p2"]}), tmp_path / "e.parquet")
    np.savez(tmp_path / "e.npz", photo=np.array(values))
    assert read_column(tmp_path / "e.csv", "photo").tolist() == values
    assert read_column(tmp_path / "e.npz", "photo").tolist() == values
    assert read_column(tmp_path / "e.parquet", "photo").tolist() == ["p1", None, "p2"]
    for suffix in ("csv", "npz", "parquet"):
        with pytest.raises(FileFormatError, match="has no column 'clip'"):
            read_column(tmp_path / f"e.{suffix}", "clip")
