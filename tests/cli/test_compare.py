import json
from pathlib import Path

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.comparison.methods import METHODS
from hilander.synthetic.identities import make_identities


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = []
    for name, seed in (("train", 0), ("test", 1)):
        features, labels = make_identities(n_identities=12, size=10, spread=0.5, seed=seed)
        np.savez(tmp_path / f"{name}.npz", features=features, labels=labels)
        paths.append(str(tmp_path / f"{name}.npz"))
    return paths


def test_a_comparison_prints_a_table_and_writes_reports(files, tmp_path, capsys) -> None:
    folder = tmp_path / "out"
    code = main(["compare", *files, "--methods", "finch,aro", "-o", str(folder), "--jobs", "2"])
    assert code == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert {lines[1].split()[0], lines[2].split()[0]} == {"FINCH", "ARO"}
    scores = [float(line.split()[2]) for line in lines[1:3]]
    assert scores == sorted(scores, reverse=True)
    assert "FINCH" in shown.err
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert {row["method"] for row in rows} == {"FINCH", "ARO"}
    assert (folder / "report.md").is_file()
    assert (folder / "report.html").is_file()
    again = main(["compare", *files, "--methods", "finch", "-o", str(folder), "--quiet"])
    assert again == 0
    assert len((folder / "rows.jsonl").read_text().splitlines()) == 3


def test_rows_are_printed_as_json(files, capsys) -> None:
    assert main(["compare", *files, "--methods", "FINCH", "--json", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["method"] == "FINCH"
    assert row["error"] is None


def test_a_comparison_in_which_nothing_worked_fails(files, capsys) -> None:
    code = main(["compare", *files, "--methods", "dbscan", "--memory-limit", "0.000001"])
    assert code == 1
    assert "not started: needs about" in (shown := capsys.readouterr().out)
    assert "needs about 0.000551 GB" in shown  # not 0.0 of 0.0


def test_the_methods_are_listed_without_files(capsys) -> None:
    assert main(["compare", "--list-methods"]) == 0
    assert capsys.readouterr().out.splitlines() == list(METHODS)


def test_wrong_input_is_one_line(files, tmp_path, capsys) -> None:
    assert main(["compare", *files, "--methods", "finsh"]) == 2
    assert "did you mean 'FINCH'" in capsys.readouterr().err
    np.savez(tmp_path / "bare.npz", features=np.eye(5))
    assert main(["compare", str(tmp_path / "bare.npz"), files[1]]) == 2
    assert "holds no labels" in capsys.readouterr().err
    assert main(["compare", *files, "--methods", ""]) == 2
    assert "method '' is not known" in capsys.readouterr().err


@pytest.mark.parametrize("train", ["bare.npz", "nowhere.npz"])
def test_wrong_input_leaves_no_folder(train, files, tmp_path) -> None:
    np.savez(tmp_path / "bare.npz", features=np.eye(5))
    folder = tmp_path / "out"
    assert main(["compare", str(tmp_path / train), files[1], "-o", str(folder)]) == 2
    assert not folder.exists()
