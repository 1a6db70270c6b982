"""The report of a run, as HTML and as Markdown: facts, layout, colours, writer."""

import re

import pytest

from hilander.cli.main import main
from hilander.errors import SettingError
from hilander.explorer.partition.summary import show_share
from hilander.explorer.report.writer import write_report
from hilander.explorer.session.opening import open_explorer


def test_the_html_report_is_one_self_contained_file(run_folder, tmp_path, hostile_text):
    path = write_report(run_folder, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert list(tmp_path.glob("report*")) == [path]
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith("data:image/png;base64,")
    assert "://" not in text
    assert "<script" not in text
    assert hostile_text not in text
    for heading in ("Levels", "Cluster sizes", "Map", "Largest clusters",
                    "Most doubtful clusters", "Most mixed clusters", "Settings", "Time by stage",
                    "Versions"):  # fmt: skip
        assert f"<h2>{heading}</h2>" in text
    assert "p_tau" in text
    assert "2.50 s" in text


def test_the_markdown_report_has_its_figures_beside_it(run_folder, tmp_path):
    pytest.importorskip("matplotlib")
    text = write_report(run_folder, tmp_path / "report.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert len(pictures) >= 4
    for picture in pictures:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert "<img" not in text


def test_a_minimal_run_has_a_report(make_run, tmp_path):
    text = write_report(make_run("bare", bare=True), tmp_path / "r.html").read_text()
    assert "<h2>Map</h2>" not in text
    assert "Most mixed" not in text
    assert "item-00" in text
    pytest.importorskip("matplotlib")
    write_report(tmp_path / "bare", tmp_path / "r.md")


def test_another_ending_is_refused(run_folder, tmp_path):
    with pytest.raises(SettingError, match=r"\.pdf"):
        write_report(run_folder, tmp_path / "report.pdf")


def test_the_command_writes_the_report(run_folder, tmp_path, capsys):
    output = tmp_path / "r.html"
    assert main(["report", str(run_folder), "-o", str(output)]) == 0
    assert str(output) in capsys.readouterr().out
    assert output.stat().st_size > 5000
    assert main(["report", str(run_folder), "-o", str(output), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["report", str(tmp_path / "nowhere"), "-o", str(output)]) == 2
    assert main(["report", str(tmp_path), "-o", str(output)]) == 2


@pytest.fixture
def reviewed_run(run_folder):
    """A run whose two largest clusters were merged and named; another one is junk."""
    explorer = open_explorer(run_folder)
    by_size = explorer.reviewed().order("size").tolist()
    explorer.act("name", {"group": by_size[3], "name": "before"})
    explorer.act("name", {"group": by_size[3], "name": "<b>tulips</b>"})
    explorer.act("merge", {"groups": by_size[:2]})
    explorer.act("name", {"group": by_size[0], "name": "roses | and more"})
    explorer.act("junk", {"group": by_size[2], "junk": True})
    explorer.act("junk", {"group": by_size[4], "junk": True})
    explorer.act("undo", {})
    n_clusters = int(explorer.reviewed().alive.sum())
    explorer.store.close()
    return run_folder, by_size, n_clusters


def test_a_report_has_the_names_and_the_corrections_of_the_review(reviewed_run, tmp_path):
    run, (largest, _, junk, *_), n_clusters = reviewed_run
    text = write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"<b>{n_clusters}</b><span>clusters</span>" in text
    assert "<b>2</b><span>named</span>" in text
    assert "<b>5</b><span>corrections</span>" in text
    assert "<b>1</b><span>marked as junk</span>" in text
    assert "<td>As corrected</td>" in text
    named = text.split("<h2>Named clusters</h2>")[1].split("<h2>")[0]
    assert named.index("roses | and more") < named.index("&lt;b&gt;tulips&lt;/b&gt;")
    assert f"#{largest}, " in named
    shown = text.split("<h2>Largest clusters</h2>")[1].split("<h2>Corrections</h2>")[0]
    assert "<b>roses | and more</b>" in shown
    assert f"<b>Cluster {junk}</b>" not in shown
    corrections = text.split("<h2>Corrections</h2>")[1].split("<h2>")[0]
    assert corrections.count("<tr><td>") == 5
    assert corrections.index("as junk") < corrections.index("merged cluster")
    assert "<b>tulips" not in text


def test_a_markdown_report_has_the_names_and_the_corrections_too(reviewed_run, tmp_path):
    pytest.importorskip("matplotlib")
    text = write_report(reviewed_run[0], tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## Named clusters" in text
    assert "| roses \\| and more |" in text
    assert "| As corrected |" in text
    assert text.split("## Corrections")[1].split("## ")[0].count("\n| 2") == 5


def test_a_report_shows_the_run_as_it_was_if_asked(reviewed_run, tmp_path):
    run, by_size, _ = reviewed_run
    path = tmp_path / "r.html"
    assert main(["report", str(run), "-o", str(path), "--no-review", "--quiet"]) == 0
    text = path.read_text(encoding="utf-8")
    assert "roses" not in text
    assert "Corrections" not in text
    assert f"<b>Cluster {by_size[0]}</b>" in text


def test_a_report_leaves_the_review_as_it_is(reviewed_run, tmp_path):
    run = reviewed_run[0]
    folder = run.with_name(run.name + ".explorer")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    write_report(run, tmp_path / "report.html")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    alone = run.with_name("alone")
    run.rename(alone)
    write_report(alone, tmp_path / "report.html")
    assert not alone.with_name("alone.explorer").exists()
    path = tmp_path / "moved.html"
    main(["report", str(alone), "--state", str(folder), "-o", str(path), "--quiet"])
    assert "roses" in path.read_text(encoding="utf-8")


def test_the_doubts_of_a_report_are_those_of_the_page(run_folder, explorer, tmp_path):
    explorer.precompute()
    grouping = explorer.reviewed()
    cluster = int(grouping.order("doubt")[0])
    text = write_report(run_folder, tmp_path / "report.html").read_text(encoding="utf-8")
    first = text.split("<h2>Most doubtful clusters</h2>")[1].split("</small>")[0]
    assert f"<b>Cluster {cluster}</b>" in first
    assert f"doubt {show_share(grouping.doubt[cluster])}," in first
