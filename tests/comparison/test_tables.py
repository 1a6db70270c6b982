from dataclasses import replace
from pathlib import Path

import pytest

from hilander.comparison.report import draw_comparison, write_comparison_report
from hilander.comparison.rows import Row
from hilander.comparison.tables import Spread, format_comparison, format_markdown, summarise_rows
from hilander.errors import SettingError

GOOD = Row(
    "pair", "abc", "HAC", "paper", "fastcluster 1", 0, 1_000, 4, {"cosine": 0.55}, 1_234,
    0.5, 0.6, 0.7, 0.4, 10.0, 0.0, 2.0, 12.0, 2**30, "machine", "commit",
)  # fmt: skip
BETTER = [
    replace(GOOD, method="Leiden", family="today", seed=s, bcubed_f=0.7 + s / 10) for s in (0, 1, 2)
]
FAILED = Row("pair", "abc", "EVoC", "today", "evoc 1", 0, 1_000, 4, error="time limit: 5 s")


def test_methods_are_sorted_by_bcubed_f_and_failures_come_last() -> None:
    summaries = summarise_rows([FAILED, GOOD, *BETTER])
    assert [one.method for one in summaries] == ["Leiden", "HAC", "EVoC"]
    assert summaries[0].n_runs == 3
    assert summaries[0].mean("bcubed_f") == pytest.approx(0.8)
    assert summaries[0].scores["bcubed_f"].deviation == pytest.approx(0.1)


def test_a_spread_is_shown_only_where_it_is_there() -> None:
    assert Spread.of([0.5]).show() == "0.500"
    assert Spread.of([0.5, 0.7]).show() == "0.600 ± 0.141"


def test_the_terminal_table_shows_scores_times_and_errors() -> None:
    lines = format_comparison(summarise_rows([FAILED, GOOD, *BETTER])).splitlines()
    assert lines[0].split() == ["method", "Fp", "Fb", "NMI", "clusters", "tune", "s", "fit", "s",
                                "predict", "s"]  # fmt: skip
    assert lines[1].startswith("Leiden")
    assert "1,234" in lines[2]
    assert lines[-1] == "EVoC: time limit: 5 s"


def test_the_markdown_table_has_a_cell_for_each_column() -> None:
    table = format_markdown(summarise_rows([FAILED, GOOD])).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert "cosine=0.55" in table[2]
    assert "*time limit: 5 s*" in table[3]


def test_a_report_is_written_and_the_page_needs_no_other_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    odd = replace(FAILED, error="<script>alert(1)</script>")
    written = write_comparison_report([GOOD, *BETTER, odd], tmp_path)
    assert {path.name for path in written} == {"report.md", "report.html", "comparison.png"}
    page = (tmp_path / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "<script>" not in page
    assert 'src="http' not in page
    assert "![methods by score and time](comparison.png)" in (tmp_path / "report.md").read_text()


def test_a_report_without_any_result_still_tells_why(tmp_path: Path) -> None:
    written = write_comparison_report([FAILED], tmp_path)
    assert {path.name for path in written} == {"report.md", "report.html"}
    assert "time limit" in (tmp_path / "report.md").read_text()
    with pytest.raises(SettingError, match="no method has a result"):
        draw_comparison(summarise_rows([FAILED]))


@pytest.mark.parametrize("n_methods", [1, 2, 15])
def test_the_picture_holds_its_labels_and_legend_whatever_the_number_of_methods(n_methods) -> None:
    rows = [replace(GOOD, method=f"method {number}") for number in range(n_methods)]
    figure = draw_comparison(summarise_rows(rows))
    figure.canvas.draw()
    whole = figure.bbox
    for axes in figure.axes:
        shown = [axes.xaxis.label, *([axes.get_legend()] if axes.get_legend() else [])]
        for box in (one.get_window_extent() for one in shown):
            assert box.y0 >= whole.y0
            assert box.y1 <= whole.y1
    times = figure.axes[1]
    assert times.get_legend().get_window_extent().y0 >= times.get_window_extent().y1


def test_a_failed_method_leaves_no_cell_empty() -> None:
    (line,) = [
        one for one in format_markdown(summarise_rows([FAILED])).splitlines() if "EVoC" in one
    ]
    assert all(cell.strip() for cell in line.strip("|").split("|"))
