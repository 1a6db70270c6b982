"""Ids of items in files."""

import numpy as np
import pytest

from hilander.collection.item_ids import read_ids
from hilander.errors import FileFormatError, MissingFileError
from hilander.io.files import write_table


def test_ids_are_read_from_all_kinds_of_files(tmp_path):
    (tmp_path / "a.csv").write_text("name,id\nx,7\ny,8\n")
    (tmp_path / "b.txt").write_text("7\n8\n\n")
    (tmp_path / "c.tsv").write_text("id\tname\n7\tx\n8\ty\n")
    np.save(tmp_path / "d.npy", np.array([7, 8]))
    write_table(tmp_path / "e.parquet", {"id": np.array([7, 8])})
    for path in tmp_path.iterdir():
        assert read_ids(path).astype(str).tolist() == ["7", "8"], path.name


def test_files_without_ids_are_refused(tmp_path):
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "x.json").write_text("[]")
    np.save(tmp_path / "matrix.npy", np.ones((2, 2)))
    write_table(tmp_path / "other.parquet", {"name": np.array([7, 8])})
    for path in tmp_path.iterdir():
        with pytest.raises(FileFormatError):
            read_ids(path)
    with pytest.raises(MissingFileError):
        read_ids(tmp_path / "nowhere.csv")
