"""What the documents promise, read and tried."""

import argparse
import re
from pathlib import Path

import pytest

from hilander.cli.main import make_parser

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def commands():
    parser = make_parser()
    chosen = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return chosen.choices


def sections(text):
    """The text under each second-level heading."""
    parts = re.split(r"^## ", text, flags=re.M)[1:]
    return {part.splitlines()[0].strip(): part for part in parts}


def documented_arguments(section):
    """Arguments in the first cells of the table of arguments, without their values."""
    table = section.partition("| argument | meaning |")[2]
    cells = re.findall(r"^\| (.+?) \| ", table, flags=re.M)
    return {name.split()[0] for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def parser_arguments(parser):
    found = set()
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction):
            found |= set(action.option_strings) or {action.metavar}
    return found


def test_every_command_has_a_section_and_every_section_a_command():
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    assert set(sections(text)) == {f"hilander {name}" for name in commands()}


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_and_document_name_the_same_options(name):
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    section = sections(text)[f"hilander {name}"]
    assert documented_arguments(section) == parser_arguments(commands()[name])


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_says_what_it_does(name):
    for action in commands()[name]._actions:
        assert action.help, action.option_strings


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.S)


def test_the_readme_example_has_five_lines_and_runs(tmp_path, monkeypatch):
    (example,) = python_blocks(ROOT / "README.md")
    lines = [line for line in example.splitlines() if line and not line.startswith("from ")]
    assert len(lines) <= 5
    run_small(example, tmp_path, monkeypatch)


def test_the_example_of_the_python_page_runs(tmp_path, monkeypatch):
    for example in python_blocks(ROOT / "docs" / "reference" / "python.md"):
        run_small(example, tmp_path, monkeypatch)


def run_small(example, folder, monkeypatch):
    """Run an example as it stands, trained for fewer epochs."""
    from hilander.estimator import HiLander

    fit = HiLander.fit
    monkeypatch.setattr(
        HiLander, "fit", lambda self, *a, **k: fit(self.set_params(epochs=1), *a, **k)
    )
    monkeypatch.chdir(folder)
    exec(compile(example, "example", "exec"), {})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_and_pictures_of_the_documents_are_there(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), target


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < 300_000, picture.name


def test_the_glossary_explains_the_words_of_the_house():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = "node neighbour affinity linkage density parent peak level identity k".split()  # noqa: SIM905
    for word in words:
        assert f"| **{word}** |" in text


def test_the_page_of_faithful_learning_is_drawn_from_its_rows():
    from benchmarks.faithful import PAGE, ROWS, render
    from benchmarks.rows import read_rows

    assert PAGE.read_text(encoding="utf-8") == render(read_rows(ROWS))


def test_the_figure_of_how_it_works_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    import runpy

    draw = runpy.run_path(str(ROOT / "docs" / "figures" / "levels.py"))["draw"]
    panels = draw().axes
    assert len(panels) >= 2
    assert all(re.match(r"level \d: \d+ nodes", panel.get_title()) for panel in panels)


def test_the_commands_of_make_are_there():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test", "check", "bench", "clean"):
        assert re.search(rf"^{target}:", text, flags=re.M)
    assert "make check" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_changelog_knows_the_version():
    from hilander import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
