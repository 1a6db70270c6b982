import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.calibration import main, render, render_table, score_clusters
from benchmarks.rows import append_row, read_rows
from hilander.synthetic.identities import make_identities

ROOT = Path(calibration.__file__).resolve().parents[1]


@pytest.fixture
def data(tmp_path):
    for name, seed in zip(calibration.PAIRS["omniglot"], (0, 1), strict=True):
        X, y = make_identities(n_identities=15, size=8, dim=8, seed=seed)
        np.savez(tmp_path / name, features=X.astype(np.float16), labels=y.astype(np.int32))
    return tmp_path


def row(**changes):
    curve = {
        "predicted": [0.1, None], "observed": [0.2, None], "count": [10, 0], "ece": 0.1,
        "bias": -0.1, "brier": 0.2,
    }  # fmt: skip
    facts = dict.fromkeys(("spearman", "mean_quality", "mean_bcubed", "splits_right"), 0.5)
    base = {"dataset": "omniglot", "part": "test", "slope": 1.2, "offset": 0.5, "commit": "abc"}
    more = {"machine": "m", "auc": None, "merges_wrong": 0.25, "linkage": curve, "scaled": curve}
    return {**base, **facts, **more, **changes}


def test_there_is_a_row_of_each_part_and_the_model_is_not_trained_on_held_out_identities(
    data, monkeypatch
):
    from hilander import HiLander

    seen = []
    fit = HiLander.fit
    monkeypatch.setattr(
        HiLander, "fit", lambda self, X, y: seen.append(set(y.tolist())) or fit(self, X, y)
    )
    settings = {"method": "paper", "epochs": 1, "hidden": 8, "k": 5, "p_tau": 0.5}
    rows = list(calibration.measure("omniglot", data, **settings))
    assert [one["part"] for one in rows] == ["held-out", "test"]
    assert len(seen[0]) == 12
    for one in rows:
        json.dumps(one, allow_nan=False)
        assert sum(one["linkage"]["count"]) == sum(one["scaled"]["count"]) > 0
        assert 0 <= one["mean_quality"] <= 1
    assert rows[0]["scaled"]["brier"] <= rows[0]["linkage"]["brier"] + 0.01


def test_the_score_of_a_cluster_is_the_mean_bcubed_f_of_its_points():
    clusters, labels = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2])
    score, perfect = score_clusters(clusters, labels)
    # Two of three with all of identity 0: F = 2 * 2 / (3 + 2); one of three, half of identity 1.
    np.testing.assert_allclose(score, [(0.8 + 0.8 + 0.4) / 3, 2 / 3, 1])
    np.testing.assert_array_equal(perfect, [False, False, True])


def test_the_last_row_of_a_part_counts_and_a_missing_number_is_a_dash():
    text = render_table([row(slope=9.0), row(part="held-out", note="By hand."), row()])
    assert "Commit abc; m. By hand. Drawn by" in text
    assert "9.00" not in text
    assert text.index("omniglot, held-out") < text.index("omniglot, test")
    assert "| omniglot, test | 0.50 | – | 0.50 | 0.50 | 0.25 | 0.50 |" in text


def test_a_page_without_rows_shows_the_command():
    assert "Not measured yet" in render_table([])


def test_rendering_changes_what_is_between_the_markers_and_draws_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    rows, page, figure = (tmp_path / name for name in ("rows.jsonl", "page.md", "figure.png"))
    append_row(rows, row())
    before = f"head\n{calibration.BEGIN}\nold\n{calibration.END}\ntail\n"
    page.write_text(before, encoding="utf-8")
    places = ["--rows", str(rows), "--page", str(page), "--figure", str(figure)]
    assert main(["render", *places]) == 0
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.startswith("head\n")
    assert text.endswith("tail\n")
    assert figure.is_file()
    assert render(text, read_rows(rows)) == text


def test_the_page_of_confidence_is_drawn_from_its_rows():
    text = calibration.PAGE.read_text(encoding="utf-8")
    assert calibration.BEGIN in text
    assert text == render(text, read_rows(calibration.ROWS))


def test_the_example_of_the_page_of_confidence_runs():
    text = (ROOT / "docs" / "how-it-works" / "confidence.md").read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    example = example.replace("HiLander(", 'HiLander(method="paper", ')
    exec(compile(example, "example", "exec"), {})
