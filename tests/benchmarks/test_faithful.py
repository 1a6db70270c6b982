import json

import numpy as np
import pytest

from benchmarks import faithful
from benchmarks.faithful import Trial, main, measure, render
from benchmarks.rows import append_row, read_rows
from hilander.synthetic.identities import make_identities

SMALL = Trial("omniglot", "convolution", epochs=2, hidden=8)


@pytest.fixture
def data(tmp_path):
    for name, seed in zip(faithful.PAIRS["omniglot"], (0, 1), strict=True):
        X, y = make_identities(n_identities=12, size=8, dim=8, seed=seed)
        np.savez(tmp_path / name, features=X.astype(np.float16), labels=y.astype(np.int32))
    return tmp_path


def test_a_trial_gives_a_row_for_each_p_tau_with_its_circumstances(data):
    rows = list(measure(SMALL, data, (0.3, 0.6)))
    assert [row["p_tau"] for row in rows] == [0.3, 0.6]
    known = {"dataset", "data_sha256", "encoder", "features", "epochs", "optimizer", "seed"}
    known |= {"pairwise_f", "bcubed_f", "nmi", "seconds", "train_seconds", "commit", "machine"}
    for row in rows:
        assert known <= set(row)
        json.dumps(row)


def test_a_training_that_diverges_is_a_row_with_its_error(data, monkeypatch):
    class Broken:
        history_ = ({"loss": float("nan")},)

    monkeypatch.setattr(faithful, "train", lambda *_: Broken())
    (row,) = measure(SMALL, data)
    assert "not finite" in row["error"]


def test_run_appends_rows_and_render_draws_them(data, monkeypatch):
    monkeypatch.setattr(faithful, "P_TAUS", (0.5,))
    rows, page = data / "rows.jsonl", data / "page.md"
    options = ["--dataset", "omniglot", "--epochs", "1", "--hidden", "8", "--data", str(data)]
    places = ["--rows", str(rows), "--checkpoints", str(data / "checkpoints")]
    assert main(["run", *options, *places]) == 0
    assert [row["encoder"] for row in read_rows(rows)] == ["attention", "convolution"]
    assert main(["render", "--rows", str(rows), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "## omniglot-train to omniglot-test" in text
    assert "| 0.5 | " in text


def row(**changes):
    base = {**SMALL.__dict__, "commit": "abc", "machine": "m", "train_seconds": 3600.0}
    return {**base, "p_tau": 0.5, "pairwise_f": 0.5, "bcubed_f": 0.6, "nmi": 0.7, **changes}


def test_the_last_row_of_a_setting_counts_and_seeds_are_averaged():
    old, new = row(pairwise_f=0.1), row(pairwise_f=0.4)
    other = row(pairwise_f=0.6, seed=1)
    text = render([old, new, other])
    assert ".500 / .600 / .700" in text
    assert "2.0 hours" in text


def test_an_error_is_shown_and_a_missing_cell_is_a_dash():
    failed = {**row(encoder="attention"), "error": "it diverged"}
    for name in ("p_tau", "pairwise_f", "bcubed_f", "nmi"):
        del failed[name]
    text = render([row(), failed])
    assert "it diverged." in text
    assert "–" in text


def test_numbers_that_json_cannot_hold_become_null(tmp_path):
    append_row(tmp_path / "rows.jsonl", {"loss": float("nan"), "name": "x"})
    assert read_rows(tmp_path / "rows.jsonl") == [{"loss": None, "name": "x"}]
