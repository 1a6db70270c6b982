"""The benchmark of collections."""

from benchmarks.collection import MARKS, PAGE, ROWS, describe, measure_drops
from benchmarks.rows import put_block, read_rows
from hilander.synthetic.identities import make_identities


def test_the_page_is_drawn_from_its_rows():
    text = PAGE.read_text("utf-8")
    assert text == put_block(text, MARKS, describe(read_rows(ROWS)))


def test_drops_are_compared_with_one_run():
    X, y = make_identities(n_identities=12, size=20, dim=16, spread=0.4, seed=0)
    rows = measure_drops(X, y)
    assert [row["way"] for row in rows] == ["auto", "never"]
    assert rows[0]["n_whole"] > rows[1]["n_whole"] == 1
    for row in rows:
        assert row["bcubed_f"] > row["bcubed_f_of_one_run"] - 0.02
        assert row["n_untouched_kept"] == row["n_untouched"]
        assert row["n_untouched_moved"] == 0
    table = describe([{"kind": "drops", "dataset": "omniglot", **row} for row in rows])
    assert "| omniglot | " in table
