"""The documentation agrees with the code: options, examples, links, diagrams, words."""

import argparse
import re
import runpy
from pathlib import Path

import pytest

from hilander.cli.main import make_parser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIGURES = DOCS / "figures"
COMMAND_LINE = DOCS / "reference" / "command-line.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
MOST_README_LINES = 120
LARGEST_PICTURE = 300_000  # bytes
MOST_CELL_WORDS = 40
# Words of version 0.1 that the glossary has replaced. Old changes and results may quote them.
RETIRED_WORDS = ("adviser", "made-up", "in the box", "strays", "strangers", "crowds", "friends")


def read(path):
    return path.read_text(encoding="utf-8")


def name_of(path):
    return str(path.relative_to(ROOT))


# Command line


def commands():
    actions = make_parser()._actions
    return next(a for a in actions if isinstance(a, argparse._SubParsersAction)).choices


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
        if not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:
            found |= set(action.option_strings) or {action.metavar}
    return found


def test_every_command_has_a_section_and_every_section_a_command():
    assert set(sections(read(COMMAND_LINE))) == {f"hilander {name}" for name in commands()}


@pytest.mark.parametrize("name", sorted(commands()))
def test_help_and_document_name_the_same_options(name):
    section = sections(read(COMMAND_LINE))[f"hilander {name}"]
    assert documented_arguments(section) == parser_arguments(commands()[name])


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_has_a_help_text(name):
    for action in commands()[name]._actions:
        assert action.help, action.option_strings


# Examples


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", read(path), flags=re.S)


PAGES_WITH_EXAMPLES = [path for path in DOCUMENTS if python_blocks(path)]


@pytest.mark.parametrize("path", PAGES_WITH_EXAMPLES, ids=name_of)
def test_the_examples_of_a_page_run(path, tmp_path, monkeypatch):
    train_quickly(monkeypatch)
    monkeypatch.chdir(tmp_path)
    for example in python_blocks(path):
        exec(compile(example, str(path), "exec"), {})


def train_quickly(monkeypatch):
    """Let `fit` train the paper's network for one epoch: the examples show calls, not scores."""
    from hilander.estimator import HiLander

    fit = HiLander.fit
    small = {"method": "paper", "epochs": 1, "hidden": 16, "p_tau": 0.5}
    monkeypatch.setattr(
        HiLander, "fit", lambda self, *a, **k: fit(self.set_params(**small), *a, **k)
    )


# README


def test_the_readme_is_short_and_has_one_picture():
    text = read(ROOT / "README.md")
    assert len(text.splitlines()) <= MOST_README_LINES
    assert len(re.findall(r"!\[", text)) == 1


def test_the_examples_of_the_readme_have_ten_lines_at_most():
    blocks = re.findall(r"```[a-z]*\n(.*?)```", read(ROOT / "README.md"), flags=re.S)
    assert len(blocks) == 3  # two commands, Python, command line
    assert all(len(block.splitlines()) <= 10 for block in blocks)


# Links and pictures


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_and_pictures_of_the_documents_exist(path):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", read(path)):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), target


def test_pictures_are_small():
    pictures = [path for path in (DOCS / "images").iterdir() if path.is_file()]
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size < LARGEST_PICTURE, picture.name


# Decisions

TOPICS = [
    "Preparation", "Search", "Edge features and classifiers", "Training sets", "Decoding",
    "Thresholds", "Pretrained model", "Few labels", "Storage and review",
]  # fmt: skip
SOURCES_OF_WORTH = ("](../results/", "not measured", "train halves, one seed", "no rows are stored")


def decision_tables():
    """The cells of each row, without the two rows of a head, by topic."""
    page = sections(read(DOCS / "decisions" / "index.md"))
    rows = {topic: re.findall(r"^\| (.+) \|$", text, flags=re.M) for topic, text in page.items()}
    return {topic: [row.split(" | ") for row in found] for topic, found in rows.items()}


DECISIONS = [pytest.param(row, id=row[0]) for rows in decision_tables().values() for row in rows]
DECISIONS = [one for one in DECISIONS if one.id != "part"]


def test_the_decisions_are_one_page_with_a_table_for_each_topic():
    assert [path.name for path in (DOCS / "decisions").iterdir()] == ["index.md"]
    tables = decision_tables()
    assert list(tables) == TOPICS
    for topic, rows in tables.items():
        assert rows[0] == ["part", "what it does", "where", "worth"], topic
        assert len(rows) > 1, topic


@pytest.mark.parametrize("row", DECISIONS)
def test_a_decision_is_a_row_of_short_sentences_about_a_part_that_exists(row):
    _, what, where, worth = row
    for cell in (what, worth):
        assert len(cell.split()) <= MOST_CELL_WORDS, cell
        assert not re.search(r"[.!?] +[A-Z`\[]", cell), f"more than one sentence: {cell}"
    assert what.endswith(".")
    assert (ROOT / where.strip("`")).is_file(), where
    assert any(source in worth for source in SOURCES_OF_WORTH), f"where was this measured: {worth}"


# What is generated from the code

GENERATED = "run `make figures`"


def test_the_option_tables_are_those_of_the_parsers():
    fill_tables = runpy.run_path(str(FIGURES / "options.py"))["fill_tables"]
    assert read(COMMAND_LINE) == fill_tables(read(COMMAND_LINE)), GENERATED


def test_the_diagram_of_the_layers_is_that_of_the_contract():
    draw = runpy.run_path(str(FIGURES / "layers.py"))["draw"]
    assert read(DOCS / "images" / "layers.svg") == draw(), GENERATED


@pytest.mark.slow
def test_the_path_of_a_row_is_that_of_the_code():
    script = runpy.run_path(str(FIGURES / "path_of_a_row.py"))
    for path, text in script["make_files"](script["trace_commands"]()).items():
        assert read(path) == text, f"{path.name} differs from the code: {GENERATED}"


def test_the_table_of_hand_set_numbers_is_that_of_the_code_and_each_has_a_meaning():
    script = runpy.run_path(str(FIGURES / "constants.py"))
    page = script["describe_constants"]()
    assert read(script["TARGET"]) == page, f"constants.md differs from the code: {GENERATED}"
    assert not [line for line in page.splitlines() if line.endswith("|  |")]


@pytest.mark.slow
def test_the_page_of_broken_pictures_is_what_becomes_of_them():
    """Decoders of another version may give other reasons, but not another result."""
    from hilander.embedders.decoding import can_read_heif

    if not can_read_heif():
        pytest.skip("the extra hilander[heic] is not installed")
    script = runpy.run_path(str(FIGURES / "broken_files.py"))

    def results(page):
        cells = re.findall(r"^\| (`.*`) \| (.*) \| (.*) \|$", page, flags=re.M)
        return {name: result in ("embedded", "read once") for name, _, result in cells}

    written = results(read(script["TARGET"]))
    assert len(written) > 40
    assert written == results(script["describe_files"]())


def test_the_page_of_faithful_learning_is_drawn_from_its_rows():
    from benchmarks.faithful import PAGE, ROWS, render
    from benchmarks.rows import read_rows

    assert read(PAGE) == render(read_rows(ROWS))


def test_the_figure_of_how_it_works_can_be_drawn():
    pytest.importorskip("matplotlib")
    draw = runpy.run_path(str(FIGURES / "levels.py"))["draw"]
    panels = draw().axes
    assert len(panels) >= 2
    assert all(re.match(r"level \d: \d+ nodes", panel.get_title()) for panel in panels)


# Words


def glossary_words():
    return re.findall(r"^\| \*\*(.+?)\*\* \|", read(DOCS / "glossary.md"), flags=re.M)


def test_the_glossary_gives_each_word_one_meaning():
    words = glossary_words()
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    "word",
    ["node", "neighbour", "affinity", "linkage", "density", "parent", "peak", "level", "identity",
     "k", "fragment", "edge feature", "edge classifier", "stage", "prior model",
     "pretrained model", "dominant identity", "learned merge", "size term", "synthetic",
     "merge candidate", "per-set preparation", "equal rows"],
)  # fmt: skip
def test_the_glossary_defines_the_words_of_the_code(word):
    assert word in glossary_words()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_documents_use_no_retired_word(path):
    if path.name == "CHANGELOG.md" or path.parent.name == "results":
        return
    for word in RETIRED_WORDS:
        assert not re.search(rf"\b{word}\b", read(path)), word


# Commands of the repository


@pytest.mark.parametrize("target", ["demo", "test", "lint", "docs", "check", "bench", "clean"])
def test_make_has_the_target(target):
    assert re.search(rf"^{target}:", read(ROOT / "Makefile"), flags=re.M)


def test_ci_runs_make_check_which_runs_lint_docs_and_tests():
    assert "make check" in read(ROOT / ".ci" / "run")
    assert re.search(r"^check: lint docs test", read(ROOT / "Makefile"), flags=re.M)


def test_the_changelog_has_the_version():
    from hilander import __version__

    assert f"## {__version__}" in read(ROOT / "CHANGELOG.md")
