import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import render
from benchmarks.datasets import load_pair
from benchmarks.suite import CONFIG, Suite, Table, read_suite
from hilander.comparison.methods import METHODS
from hilander.comparison.rows import Row
from hilander.errors import FileFormatError, SettingError
from hilander.synthetic.identities import make_identities

GOOD = Row(
    "one", "abc", "HAC", "paper", "fastcluster 1", 0, 1_000, 4, {"cosine": 0.55}, 12,
    0.5, 0.6, 0.7, 0.4, 10.0, 0.25, 2.0, 12.0, 2**30, "machine", "commit",
)  # fmt: skip
FAILED = Row("one", "abc", "EVoC", "today", "evoc 1", 0, 1_000, 4, error="time limit: 5 s")


def test_the_documents_are_drawn_from_their_rows() -> None:
    for path, text in render.render_all().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name} differs from its rows; run python -m benchmarks.render"
        )


def test_the_config_names_known_methods_data_sets_and_figures() -> None:
    suite = read_suite()
    assert set(suite.datasets) >= {"omniglot", "flowers", "faces"}
    for table in suite.tables:
        assert set(table.methods) <= set(METHODS)
    assert set(suite.figures) == {"early_stop", "sensitivity", "hierarchy"}
    assert len(tomllib.loads(CONFIG.read_text())["table"]) == 5


def test_a_table_has_a_cell_for_each_method_and_data_set() -> None:
    rows = [GOOD, replace(GOOD, seed=1, bcubed_f=0.8), FAILED]
    table = Table("scores", "t", ("one", "two"), ("HAC", "EVoC", "FINCH"))
    lines = render.render_table(table, rows).splitlines()
    assert lines[2] == "| HAC | 0.500 / 0.700 / 0.700 | not run |"
    assert lines[3] == "| EVoC | *time limit: 5 s* | not run |"
    assert lines[4] == "| FINCH | not run | not run |"
    seconds = render.render_table(replace(table, kind="seconds"), rows).splitlines()
    assert seconds[2] == "| HAC | 0.25 / 2.0 | not run |"


def test_rows_of_an_older_version_of_a_data_set_are_not_shown() -> None:
    newer = replace(GOOD, dataset_hash="def", method="FINCH")
    assert render.rows_of([GOOD, newer], "one") == [newer]


def test_the_readme_keeps_everything_outside_the_markers() -> None:
    text = f"before\n{render.BEGIN}\nstale\n{render.END}\nafter\n"
    suite = Suite((Table("scores", "t", ("one",)),))
    rows = [GOOD, replace(GOOD, method="hilander (default)")]
    drawn = render.render_readme(text, suite, rows)
    assert drawn.startswith("before\n")
    assert drawn.endswith(f"{render.END}\nafter\n")
    assert "stale" not in drawn
    assert "| HAC | 0.500 / 0.600 / 0.700 |" in drawn
    assert render.render_readme(drawn, suite, rows) == drawn
    assert render.render_readme("no markers", suite, rows) == "no markers"


def test_the_readme_has_no_table_in_which_ours_is_missing() -> None:
    text = f"{render.BEGIN}\n{render.END}"
    suite = Suite((Table("scores", "t", ("one",)),))
    assert render.NOT_YET in render.render_readme(text, suite, [GOOD])


def test_documents_say_that_rows_are_of_a_former_method_until_it_is_measured_again() -> None:
    suite = Suite((Table("scores", "t", ("one",)),))
    former = replace(GOOD, method="hilander (default)", commit=f"{render.FORMER_COMMITS[0]}+")
    text = f"{render.BEGIN}\n{render.END}"
    for rows, expected in (
        ([GOOD, former], True),
        ([GOOD, former, replace(former, commit="later")], False),
        ([replace(former, method="HAC")], False),
    ):
        page, readme = (
            render.render_page(suite, rows, []),
            render.render_readme(text, suite, rows),
        )
        assert ("p_tau followed the sizes" in page) is expected
        assert ("p_tau followed the sizes" in readme) is expected


def test_a_page_has_every_table_of_the_config() -> None:
    suite = Suite((Table("scores", "First", ("one",)), Table("pseudo-labels", "Second")))
    page = render.render_page(suite, [GOOD, FAILED], [])
    assert re.findall(r"^## (.+)$", page, flags=re.M)[:2] == ["First", "Second"]
    assert "## All of one" in page


def test_a_config_with_an_unknown_key_or_kind_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "suite.toml"
    config.write_text("speed = 3\n")
    with pytest.raises(SettingError, match="not known"):
        read_suite(config)
    config.write_text('[[table]]\nkind = "colours"\ntitle = "t"\n')
    with pytest.raises(SettingError, match="colours"):
        read_suite(config)
    config.write_text("= broken")
    with pytest.raises(FileFormatError):
        read_suite(config)


def test_face_like_pairs_have_disjoint_identities_in_one_space() -> None:
    pair = load_pair("face-like/hannah@0.02")
    assert pair.train.shape[1] == pair.test.shape[1] == 128
    assert len(np.unique(pair.test_labels)) == 5
    again = load_pair("face-like/hannah@0.02")
    assert pair.digest == again.digest


def test_two_files_are_a_data_set(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        features, labels = make_identities(n_identities=5, size=4, seed=seed)
        np.savez(tmp_path / f"{name}.npz", features=features, labels=labels)
    pair = load_pair(f"{tmp_path / 'a.npz'} -> {tmp_path / 'b.npz'}")
    assert pair.test.shape == (20, 32)


def test_an_unknown_data_set_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="omniglot"):
        load_pair("mnist")
    with pytest.raises(SettingError, match="hannah"):
        load_pair("face-like/casablanca")


def test_the_shared_pairs_can_be_loaded(shared_data: Path) -> None:
    pair = load_pair("flowers")
    assert pair.train.shape == (3_859, 1_280)
    assert pair.test.shape == (4_330, 1_280)
