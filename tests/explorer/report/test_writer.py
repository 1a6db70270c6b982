"""The report of a run, as HTML and as Markdown: facts, layout, colours, writer."""

import re

import pytest

from hilander.cli.main import main
from hilander.errors import SettingError
from hilander.explorer.report.writer import write_report


def test_the_html_report_is_one_self_contained_file(run_folder, tmp_path, hostile_text):
    path = write_report(run_folder, tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert list(tmp_path.glob("report*")) == [path]
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith("data:image/png;base64,")
    assert "://" not in text
    assert "<script" not in text
    assert hostile_text not in text
    for heading in ("Levels", "Cluster sizes", "Map of peaks", "Largest clusters",
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
    assert "Map of peaks" not in text
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
