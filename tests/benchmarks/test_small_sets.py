import numpy as np
import pytest

from benchmarks.rows import put_block, read_rows
from benchmarks.small_sets import MARKS, PAGE, ROWS, SIZES, draw_small_set, format_rows, score

LABELS = np.repeat(np.arange(100), 12)


@pytest.mark.parametrize("sizes", SIZES)
def test_the_drawn_set_has_the_given_number_of_points_and_sizes(sizes):
    rows = draw_small_set(LABELS, sizes, 60, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist())) == 60
    counts = np.unique(LABELS[rows], return_counts=True)[1]
    if sizes == "mixed":
        assert 1 in counts
        assert counts.max() > 2
    else:
        assert set(counts) == {{"two each": 2, "five each": 5, "ten each": 10}[sizes]}


def test_an_identity_that_is_too_small_is_not_drawn():
    labels = np.concatenate([np.zeros(3, dtype=int), np.repeat(np.arange(1, 5), 10)])
    rows = draw_small_set(labels, "five each", 100, np.random.default_rng(0))
    assert set(labels[rows]) == {1, 2, 3, 4}
    assert len(rows) == 20


def test_noise_points_and_points_of_a_method_that_refuses_are_their_own_clusters():
    truth = np.array([0, 0, 1, 2])
    assert score(truth, truth, lambda X: np.array([0, 0, -1, -1])) == (1.0, 1.0)

    def refuse(X):
        raise ValueError("too few")

    pair, bcubed = score(truth, truth, refuse)
    assert pair == 0
    assert 0 < bcubed < 1


def test_the_table_of_small_sets_is_drawn_from_its_rows():
    text = PAGE.read_text(encoding="utf-8")
    assert MARKS[0] in text
    assert text == put_block(text, MARKS, format_rows(read_rows(ROWS)))


def test_the_table_holds_the_mean_over_sizes_and_the_last_row_of_each():
    row = {"dataset": "faces", "method": "fitted", "n_points": 30}
    rows = [
        {**row, "sizes": "two each", "bcubed_f": 0.1},
        {**row, "sizes": "two each", "bcubed_f": 0.5},
        {**row, "sizes": "mixed", "bcubed_f": 0.7},
    ]
    assert "| faces | fitted | .600 | not run | not run | not run |" in format_rows(rows)
