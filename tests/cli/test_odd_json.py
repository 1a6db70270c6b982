"""Stored JSON of another form than expected is one line, never a traceback."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hilander.cli.main import main

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"


@pytest.fixture
def stored(tmp_path):
    """A model and a run of version 0.1, whose files have no digests, and labels."""
    for name in ("model-default", "run-default"):
        shutil.copytree(FIXTURES / name, tmp_path / name.split("-")[0])
    np.save(tmp_path / "labels.npy", np.arange(135) // 9)
    return tmp_path


@pytest.mark.parametrize("command", ["info", "score", "report", "doubts"])
@pytest.mark.parametrize(
    "details",
    [[], 3, {"input": 1}, {"input": {"has_ids": []}}, {"stages": 1}, {"settings": None}],
)
def test_a_run_with_an_odd_run_json_is_an_error_or_read_without_it(
    stored, capsys, command, details
):
    run = stored / "run"
    whole = json.loads((run / "run.json").read_text())
    odd = whole | details if isinstance(details, dict) else details
    (run / "run.json").write_text(json.dumps(odd))
    more = {"score": ["--labels", f"{stored}/labels.npy"], "report": ["-o", f"{stored}/r.md"]}
    code = main([command, str(run), *more.get(command, [])])
    assert code == (0 if command == "report" else 2)
    if code:
        assert "run.json does not hold what it should" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"network": {"kind": []}},
        {"network": {"kind": "evidence", "hidden": "4", "members": 5}},
        {"network": {"kind": "evidence", "hidden": 10**9, "members": 10**9}},
        {"network": {"kind": "evidence", "hidden": 60_000, "members": 5}},
        {"training": None},
        {"training": {"validation": [3]}},
        {"rules": {"k": {}}},
        {"parameters": []},
        {"n_features": "many"},
    ],
)
def test_a_model_with_an_odd_description_is_one_line(stored, capsys, change):
    model = stored / "model"
    whole = json.loads((model / "model.json").read_text())
    (model / "model.json").write_text(json.dumps(whole | change))
    assert main(["info", str(model)]) == 2
    assert capsys.readouterr().err.startswith("hilander: error: ")
