import numpy as np

from benchmarks.albums import MARKS, PAGE, ROWS, draw_album, format_rows, measure
from benchmarks.rows import put_block, read_rows
from benchmarks.small_sets import METHODS

LABELS = np.concatenate([np.zeros(40, dtype=int), np.repeat(np.arange(1, 60), 3)])


def test_one_identity_has_its_share_and_others_a_few_points_each():
    rows = draw_album(LABELS, 0, 0.5, 2, np.random.default_rng(0))
    size = np.bincount(LABELS[rows])
    assert size[0] == 40
    assert len(rows) == len(set(rows.tolist())) == 80
    assert set(size[1:]) == {0, 1, 2}


def test_an_album_ends_where_there_are_no_more_others():
    assert len(draw_album(LABELS, 0, 0.1, 1, np.random.default_rng(0))) == 40 + 59


def test_a_row_is_the_mean_over_albums_of_one_share(monkeypatch):
    labels = np.random.default_rng(0).permutation(LABELS)
    monkeypatch.setattr("benchmarks.albums.read_test", lambda name: (labels[:, None], labels))
    monkeypatch.setattr("benchmarks.albums.make_method", lambda method, name: lambda X: X.ravel())
    rows = list(measure("faces", ["fitted"]))
    assert [row["share"] for row in rows] == [0.5, 0.8, 0.9]
    assert all(row["bcubed_f"] == row["pairwise_f"] == 1 for row in rows)
    assert all(row["albums"] == 12 for row in rows)


def test_the_table_of_albums_is_drawn_from_its_rows():
    text = PAGE.read_text(encoding="utf-8")
    assert MARKS[0] in text
    assert text == put_block(text, MARKS, format_rows(read_rows(ROWS)))
    assert {row["method"] for row in read_rows(ROWS)} == set(METHODS)


def test_the_table_holds_the_last_row_of_each():
    row = {"dataset": "faces", "method": "fitted", "share": 0.8}
    rows = [
        {**row, "pairwise_f": 0.1, "bcubed_f": 0.2},
        {**row, "pairwise_f": 0.3, "bcubed_f": 0.4},
    ]
    assert "| faces | fitted | not run | .300 / .400 | not run |" in format_rows(rows)
