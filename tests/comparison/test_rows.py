from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilander.comparison.rows import (
    Row,
    append_rows,
    describe_machine,
    digest_arrays,
    latest_rows,
    read_rows,
)
from hilander.errors import FileFormatError

ROW = Row("pair", "abc", "FINCH", "paper", "hilander 1", 0, 10, 4, {"level": 1}, 3, 0.5, 0.6)


def test_rows_are_added_and_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [ROW])
    first = path.read_bytes()
    append_rows(path, [replace(ROW, seed=1), replace(ROW, seed=2, error="died")])
    assert path.read_bytes().startswith(first)
    assert read_rows(path) == [ROW, replace(ROW, seed=1), replace(ROW, seed=2, error="died")]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_rows(path, [ROW])
    path.write_text(path.read_text() + "{broken\n")
    with pytest.raises(FileFormatError, match="line 2"):
        read_rows(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_rows(tmp_path / "none.jsonl")


def test_the_latest_row_of_a_run_counts() -> None:
    better, other = replace(ROW, bcubed_f=0.9), replace(ROW, method="HAC")
    assert latest_rows([ROW, other, better]) == [better, other]


def test_a_result_replaces_an_error_and_an_error_a_result() -> None:
    failed = replace(ROW, error="died", bcubed_f=None)
    runs = [replace(ROW, seed=seed) for seed in range(3)]
    assert latest_rows([failed, *runs]) == runs
    assert latest_rows([*runs, failed]) == [failed]


def test_a_digest_depends_on_values_shape_and_type() -> None:
    array = np.arange(6, dtype=np.float32)
    others = [array + 1, array.reshape(2, 3), array.astype(np.float64)]
    assert len({digest_arrays(one) for one in (array, *others)}) == 4
    assert digest_arrays(array) == digest_arrays(array.copy())


def test_the_machine_is_described_without_its_name() -> None:
    import socket

    assert socket.gethostname() not in describe_machine()
    assert "cores" in describe_machine()
