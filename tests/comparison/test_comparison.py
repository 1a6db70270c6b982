import sys
from pathlib import Path

import numpy as np
import pytest

import hilander.comparison.run as comparison_run
from hilander.comparison.methods import METHODS, choose_methods
from hilander.comparison.pair import Pair, StoredPair, prepare_pair
from hilander.comparison.rows import Row, read_rows
from hilander.comparison.run import Plan, compare_methods
from hilander.comparison.runner import Limits
from hilander.comparison.worker import Job, run_job
from hilander.errors import EmbeddingError, LabelError, SettingError
from hilander.synthetic.identities import make_identities

sys.path.insert(0, str(Path(__file__).parent))
from tests.comparison.fake_rivals import METHODS as FAKES

REGISTRY = "tests.comparison.fake_rivals:METHODS"


@pytest.fixture(scope="module")
def pair() -> Pair:
    train = make_identities(n_identities=12, size=10, spread=0.5, seed=0)
    test = make_identities(n_identities=10, size=10, spread=0.5, seed=1)
    return prepare_pair("small", train, test)


@pytest.fixture(autouse=True)
def fakes_are_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")


def compare(pair: Pair, name: str, limits: Limits | None = None, **plan) -> list[Row]:
    chosen = Plan(limits=limits or Limits(seconds=120), registry=REGISTRY, **plan)
    return compare_methods(pair, [FAKES[name]], chosen)


def test_a_method_that_works_is_a_row_with_everything(pair: Pair, tmp_path: Path) -> None:
    (row,) = compare(pair, "FINCH", rows=tmp_path / "rows.jsonl")
    assert row.error is None
    assert row.dataset == "small"
    assert row.dataset_hash == pair.digest
    assert (row.n, row.d, row.seed) == (100, 32, 0)
    assert row.bcubed_f is not None
    assert 0.5 < row.bcubed_f <= 1
    for name in ("pairwise_f", "nmi", "ari", "n_clusters", "tune_seconds", "fit_seconds",
                 "predict_seconds", "cpu_seconds", "peak_memory"):  # fmt: skip
        assert getattr(row, name) is not None, name
    assert row.machine
    assert row.version.startswith("hilander ")
    assert read_rows(tmp_path / "rows.jsonl") == [row]


def test_a_method_that_raises_is_a_row_with_its_error(pair: Pair) -> None:
    (row,) = compare(pair, "raises")
    assert row.error == "ValueError: this method cannot go on"
    assert row.bcubed_f is None


def test_a_method_that_takes_too_long_is_a_row(pair: Pair) -> None:
    (row,) = compare(pair, "slow", Limits(seconds=5))
    assert row.error is not None
    assert "time limit" in row.error


def test_a_method_that_takes_too_much_memory_is_a_row(pair: Pair) -> None:
    (row,) = compare(pair, "greedy", Limits(seconds=60, memory=700_000_000))
    assert row.error is not None
    assert "memory limit" in row.error


def test_a_method_that_cannot_fit_is_refused_before_it_starts(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_run, "run_limited", None)  # starting anything would fail
    (row,) = compare(pair, "square")
    assert row.error is not None
    assert row.error.startswith("not started: needs about")


def test_a_missing_library_is_a_row_that_says_what_installs_it(pair: Pair) -> None:
    (row,) = compare(pair, "absent")
    assert row.error is not None
    assert "pip install 'hilander[rivals]'" in row.error


def test_seeds_that_were_done_survive_one_that_died(pair: Pair) -> None:
    rows = compare(pair, "unsteady", seeds=3)
    assert [row.seed for row in rows] == [0, 1, 2]
    assert rows[0].error is None
    assert rows[0].n_clusters == 1
    assert "seed 1 died" in (rows[1].error or "")


def test_noise_points_are_clusters_of_their_own(pair: Pair) -> None:
    (row,) = compare(pair, "noise")
    assert row.n_clusters == row.n


def test_test_labels_never_reach_a_method(pair: Pair, tmp_path: Path) -> None:
    """The labels' file is poisoned: a process that opened it would fail."""
    data, output = tmp_path / "data", tmp_path / "output"
    data.mkdir()
    output.mkdir()
    StoredPair.write(pair, data, k=15)
    (data / "truth.npy").write_bytes(b"poison")
    run_job(Job("FINCH", str(data), str(output), 1, REGISTRY))
    clean = np.load(output / "labels-0.npy")
    assert len(clean) == len(pair.test)
    shuffled = Pair(
        pair.name, pair.train, pair.train_labels, pair.test, pair.test_labels[::-1], "x", ""
    )
    first, second = compare(pair, "FINCH")[0], compare(shuffled, "FINCH")[0]
    assert first.params == second.params
    assert first.n_clusters == second.n_clusters


def test_a_pair_of_different_widths_or_without_labels_is_refused() -> None:
    narrow = make_identities(n_identities=4, size=5, dim=8)
    wide = make_identities(n_identities=4, size=5, dim=9)
    with pytest.raises(EmbeddingError, match="8 features, the test set 9"):
        prepare_pair("odd", narrow, wide)
    with pytest.raises(LabelError, match="test set has no labels"):
        prepare_pair("odd", narrow, (narrow[0], None))


def test_methods_are_chosen_by_any_spelling_and_in_order() -> None:
    names = [method.name for method in choose_methods(["hdbscan", "K-Means", "gcnv+e"])]
    assert names == ["k-means", "H-DBSCAN", "GCN-V+E"]
    assert [method.name for method in choose_methods(None)] == list(METHODS)
    with pytest.raises(SettingError, match="did you mean 'FINCH'"):
        choose_methods(["finsh"])


def test_a_plan_that_means_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="seeds=0"):
        Plan(seeds=0)
    with pytest.raises(SettingError, match="above 0"):
        Plan(limits=Limits(seconds=0))


def test_all_of_the_papers_methods_and_todays_rivals_are_there() -> None:
    wanted = {
        "k-means", "DBSCAN", "ARO", "HAC", "H-DBSCAN", "Graclus", "FINCH", "L-GCN", "GCN-V",
        "GCN-V+E", "LANDER", "Hi-LANDER (paper)", "fast_hdbscan", "EVoC", "Infomap", "Leiden",
        "cosine threshold", "hilander (default)",
    }  # fmt: skip
    assert set(METHODS) == wanted
