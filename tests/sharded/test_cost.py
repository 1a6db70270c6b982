"""The prediction of a run: near the measured rows, and in proportion to workers and memory."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rows import read_rows
from benchmarks.sharded import ROWS, fit, fitted, shape_of
from hilander.cli.main import main
from hilander.sharded.cost import CONSTANTS, STAGES, RunCost, Shape, predict


@pytest.fixture(scope="module")
def rows():
    return fitted(read_rows(ROWS))


def test_predictions_are_near_the_measured_rows(rows):
    assert len(rows) >= 6
    ratios = [
        sum(predict(shape_of(row)).values()) / sum(row["cpu_seconds"][one] for one in STAGES)
        for row in rows
    ]
    assert min(ratios) > 0.65
    assert max(ratios) < 1.3


def test_the_constants_are_those_of_the_fit(rows):
    for stage, found in fit(rows).items():
        np.testing.assert_allclose(CONSTANTS[stage], found, rtol=0.02, atol=1e-3)


def test_workers_share_the_tasks_and_not_the_work_of_the_driver():
    shape = Shape(100_000_000, 256, 15)
    one, sixteen = (RunCost(shape, n, 4_000_000_000).seconds for n in (1, 16))
    assert sixteen["score"] == pytest.approx(one["score"] / 16)
    assert sixteen["driver"] == one["driver"]
    assert RunCost(shape, 16, 4_000_000_000).worker_bytes < 4_400_000_000


def test_the_plan_is_printed_and_nothing_is_written(tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.ones((5_000, 16), dtype=np.float32))
    options = ["--plan", "--workers", "8", "--worker-memory", "2GB"]
    assert main(["cluster", str(tmp_path / "a.npy"), "-o", str(tmp_path / "R"), *options]) == 0
    found = capsys.readouterr().out
    assert "5,000 x 16 points, k = 15, on 8 workers of 2.0 GB: 1 partitions" in found
    assert "the driver" in found
    assert not (tmp_path / "R").exists()
