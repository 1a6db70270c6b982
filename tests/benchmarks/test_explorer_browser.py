"""The benchmark of the explorer in a browser: its page is drawn from its rows, its map is a map."""

import numpy as np

from benchmarks.explorer_browser import PAGE, ROWS, make_map, render
from benchmarks.rows import read_rows
from hilander.explorer.api.payloads.points import MAP_COLUMNS


def test_the_page_is_drawn_from_the_rows():
    page = PAGE.read_text(encoding="utf-8")
    assert render(read_rows(ROWS), page) == page
    assert "| map |" in page
    assert "1,000,000 (made up)" in page


def test_the_map_that_is_made_up_has_the_columns_of_the_explorer():
    columns = np.frombuffer(make_map(500), dtype="<i4").reshape(len(MAP_COLUMNS), -1)
    named = dict(zip(MAP_COLUMNS, columns, strict=True))
    assert named["row"].tolist() == list(range(500))
    assert np.abs(named["x"].view("<f4")).max() <= 1
    counts = np.bincount(named["cluster"])
    assert named["size"].tolist() == counts[named["cluster"]].tolist()
