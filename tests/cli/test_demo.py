"""The demo on a few characters, and what it leaves behind."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest

from hilander import Hierarchy, HiLander
from hilander.cli.demo import DemoSettings, run_demo
from hilander.cli.main import demo, main

pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

SMALL = DemoSettings(max_characters=40, epochs=1)
PLOTS = ["largest.png", "levels.png", "mistakes.png", "sample.png", "sizes.png", "training.png"]


@pytest.fixture(scope="module")
def small(tmp_path_factory, small_steps):
    """Folder, result and printed text of `hilander demo` on a few characters."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    results = []

    def run_small(folder, settings, *, verbose):
        results.append(run_demo(folder, SMALL, verbose=verbose))
        return results[0]

    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(demo, "run_demo", run_small)
        assert main(["demo", "-o", str(folder)]) == 0
    return folder, results[0], printed.getvalue()


def test_the_folder_holds_data_model_run_and_pictures(small):
    folder, result, _ = small
    assert sorted(p.name for p in (folder / "plots").iterdir()) == PLOTS
    assert HiLander.load(folder / "model").n_features_in_ == 64
    hierarchy = Hierarchy.load(folder / "run")
    with np.load(folder / "test.npz") as test, np.load(folder / "train.npz") as train:
        assert len(test["features"]) == hierarchy.n_points == len(np.load(folder / "thumbs.npy"))
        assert not set(test["labels"]) & set(train["labels"])
    assert np.array_equal(hierarchy.labels(-1), result.hierarchy.labels(-1))


def test_the_page_shows_the_scores_and_every_picture(small):
    folder, result, _ = small
    page = (folder / "index.html").read_text(encoding="utf-8")
    for name in PLOTS:
        assert f'src="plots/{name}"' in page
    for scores in result.scores.values():
        assert f"{scores.bcubed.f:.3f}" in page
    assert len(result.scores) == 2
    assert set(json.loads((folder / "scores.json").read_text())) == set(result.scores)


def test_the_other_commands_read_its_files(small, capsys):
    folder, result, _ = small
    assert main(["score", f"{folder}/run", "--labels", f"{folder}/test.npz", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bcubed_f"] == result.scores["Hi-LANDER"].bcubed.f
    details = json.loads((folder / "run" / "run.json").read_text())
    assert details["input"]["path"] == f"{folder}/test.npz"
    assert details["settings"]["model"] == f"{folder}/model"


def test_the_command_prints_the_table_and_where_the_page_is(small):
    folder, result, printed = small
    for name, scores in result.scores.items():
        assert f"{scores.bcubed.f:.3f}" in printed.partition(name)[2]
    assert f"open {folder}/index.html" in printed
