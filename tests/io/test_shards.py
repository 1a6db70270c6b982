"""Shards of embeddings: headers, pieces, rows, ids, and errors that name the shard."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilander.errors import FileFormatError, MissingFileError
from hilander.io import shards as module
from hilander.io.shards import list_shards


def write_parquet(path, rows, ids=None, **how):
    columns = {"features": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])}
    if ids is not None:
        columns["id"] = pa.array(ids)
    pq.write_table(pa.table(columns), path, **how)


def read_all(folder):
    return [one.read(0, one.n_rows) for one in list_shards(str(folder))]


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_pieces_of_all_shards_are_the_rows_in_order(tmp_path, rows, kind, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 7 * 24)
    for number, part in enumerate(np.array_split(rows, 3)):
        path = tmp_path / f"part-{number}.{kind}"
        np.save(path, part) if kind == "npy" else write_parquet(path, part, row_group_size=4)
    shards = list_shards(str(tmp_path))
    pieces = [one.read(*piece) for one in shards for piece in one.pieces()]
    assert max(map(len, pieces)) <= 7
    assert np.array_equal(np.concatenate(pieces), rows)


def test_a_file_is_a_set_of_one_shard(tmp_path, rows):
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "other.npy", rows)
    (shard,) = list_shards(str(tmp_path / "a.npy"))
    assert shard.path == str(tmp_path / "a.npy")
    assert np.array_equal(shard.read(3, 9), rows[3:9])


def test_a_folder_may_be_a_uri(tmp_path, rows):
    np.save(tmp_path / "a.npy", rows)
    (shard,) = list_shards(tmp_path.as_uri())
    assert np.array_equal(shard.read(3, 9), rows[3:9])


def test_ids_are_read_for_some_rows(tmp_path, rows):
    names = [f"item {n}" for n in range(50)]
    write_parquet(tmp_path / "a.parquet", rows, names, row_group_size=9)
    (shard,) = list_shards(str(tmp_path))
    assert shard.read_ids(8, 20).to_pylist() == names[8:20]


def test_a_shard_that_is_damaged_is_named(tmp_path, rows):
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "b.npy", rows)
    path = tmp_path / "b.npy"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileFormatError, match=r"b\.npy"):
        list_shards(str(tmp_path))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(FileFormatError, match=r"b\.npy cannot be read"):
        list_shards(str(tmp_path))


def test_damage_inside_a_parquet_shard_is_named_when_it_is_read(tmp_path, rows):
    write_parquet(tmp_path / "a.parquet", rows, compression="zstd")
    path = tmp_path / "a.parquet"
    held = bytearray(path.read_bytes())
    held[60:400] = bytes(340)
    path.write_bytes(held)
    with pytest.raises(FileFormatError, match=r"a\.parquet"):
        read_all(tmp_path)


def test_shards_of_another_dimension_and_other_files_are_refused(tmp_path, rows):
    with pytest.raises(MissingFileError, match="does not exist"):
        list_shards(str(tmp_path / "none"))
    with pytest.raises(FileFormatError, match="kinds none"):
        list_shards(str(tmp_path))
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "b.npy", rows[:, :4])
    with pytest.raises(FileFormatError, match=r"b\.npy.* 4 features where a\.npy has 6"):
        list_shards(str(tmp_path))
    write_parquet(tmp_path / "c.parquet", rows)
    with pytest.raises(FileFormatError, match="one kind"):
        list_shards(str(tmp_path))


def test_a_parquet_shard_without_embeddings_is_refused(tmp_path):
    pq.write_table(pa.table({"name": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match=r"a\.parquet.*\['name'\]"):
        list_shards(str(tmp_path))
