import re
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.rows import read_rows
from benchmarks.scale import OURS, ROWS, load_of_row
from hilander import HiLander
from hilander.cli.main import main
from hilander.embeddings.preparation import Preparation
from hilander.errors import SettingError
from hilander.hierarchy import budget
from hilander.hierarchy.budget import Load, MemoryPlan, describe_estimate, plan_memory
from hilander.io.memory import parse_memory
from hilander.synthetic.identities import make_identities
from hilander.training import inference
from hilander.training.methods import METHODS

LARGE = Load(1_000_000, 128, 20, METHODS["evidence"].cost(32))


def test_more_of_anything_takes_more_memory_and_time():
    for name in ("n_points", "dim", "k"):
        larger = replace(LARGE, **{name: 2 * getattr(LARGE, name)})
        assert larger.peak() > LARGE.peak()
        assert sum(larger.seconds(1e11).values()) > sum(LARGE.seconds(1e11).values())
    assert sum(LARGE.seconds(1e10).values()) > sum(LARGE.seconds(1e11).values())
    assert replace(LARGE, given=10**9).peak() > LARGE.peak()


def test_a_smaller_budget_stores_less_and_the_last_resort_is_a_file():
    stores = ("float32", "float16", "mapped")
    peaks = [LARGE.peak(store, frugal=True) for store in stores]
    assert peaks == sorted(peaks, reverse=True)
    for store, peak in zip(stores, peaks, strict=True):
        assert plan_memory(LARGE, int(peak) + 1, may_map=True).store == store
    with pytest.raises(SettingError):
        plan_memory(LARGE, int(peaks[1]) - 1)
    assert plan_memory(LARGE, None) == MemoryPlan("float32", None)


def test_spare_memory_goes_to_the_search():
    least = int(LARGE.peak(frugal=True))
    enough, rich = plan_memory(LARGE, least + 1), plan_memory(LARGE, least + 10**9)
    assert rich.search - enough.search == pytest.approx(10**9, abs=10)
    assert rich.score - enough.score == pytest.approx(10**9, abs=10)


@pytest.mark.parametrize("method", ["paper", "evidence"])
@pytest.mark.parametrize("given", [0, 512_000_000])
def test_every_remedy_that_the_error_names_fits_the_budget(method, given):
    load = replace(LARGE, cost=METHODS[method].cost(2_048), given=given)
    with pytest.raises(SettingError, match="need at least") as caught:
        plan_memory(load, 1_400_000_000, may_map=True)
    message = str(caught.value)
    assert "got a memory of 1.4 GB" in message
    amount = re.search(r"use a memory of ([0-9.]+ [GM]B)", message)[1]
    plan_memory(load, parse_memory(amount), may_map=True)
    fewer = int(re.search(r"or ([\d,]+) points or fewer", message)[1].replace(",", ""))
    share = fewer / load.n_points
    fewer_points = replace(load, n_points=fewer, given=int(given * share))
    plan_memory(fewer_points, 1_400_000_000, may_map=True)
    if found := re.search(r"or k = (\d+)", message):
        plan_memory(replace(load, k=int(found[1])), 1_400_000_000, may_map=True)
    if ".npy" in message:
        plan_memory(replace(load, given=0), 1_400_000_000, may_map=True)


def test_the_error_names_a_mapped_file_where_that_is_enough():
    load = replace(LARGE, given=2_000_000_000)
    fits = int(replace(load, given=0).peak("mapped", frugal=True))
    for most, named in ((fits + 1, True), (fits - 1, False)):
        with pytest.raises(SettingError) as caught:
            plan_memory(load, most, may_map=True)
        assert (".npy" in str(caught.value)) == named


@pytest.mark.parametrize(
    "load",
    [LARGE, replace(LARGE, n_points=360, dim=16, k=15, given=23_040)],
    ids=["large", "small"],
)
def test_the_parts_in_the_error_add_up_to_the_total(load):
    with pytest.raises(SettingError) as caught:
        plan_memory(load, "1MB")
    total, parts = re.search(r"need at least ([^(]*) \(([^)]*)\)", str(caught.value)).groups()
    amounts = [parse_memory(re.search(r"[0-9.]+ [GM]B", part)[0]) for part in parts.split(", ")]
    # Each amount is rounded by itself.
    rounding = sum(5e7 if "GB" in part else 5e5 for part in (total, *parts.split(", ")))
    assert abs(sum(amounts) - parse_memory(total)) <= rounding
    assert "safety margin" in parts


def test_the_estimate_is_one_line_with_its_largest_parts():
    line = describe_estimate(LARGE, MemoryPlan("float16"))
    assert "\n" not in line
    for word in ("1,000,000 x 128 points, k = 20", "search", "GFLOP/s", "GB of memory", "features"):
        assert word in line


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (40, "40 s"), (420, "7 min")])
def test_times_are_rough(seconds, text):
    assert budget.show_time(seconds) == text


def test_estimates_are_near_what_was_measured():
    for row in read_rows(ROWS):
        if row["method"] in OURS and not row["error"] and row["n"] >= budget.LONG_RUN:
            ratio = row["peak_memory"] / load_of_row(row).peak()
            assert 0.3 <= ratio <= 1.1, f"{row['method']} at {row['n']}: memory {ratio:.2f}"


@pytest.mark.parametrize("store", ["float32", "float16", "mapped"])
def test_features_are_stored_as_planned(store, tmp_path):
    features, _ = make_identities(seed=2)
    prepared = MemoryPlan(store).prepare(Preparation(None), features, tmp_path)
    assert prepared.dtype == (np.float32 if store == "float32" else np.float16)
    np.testing.assert_allclose(prepared, Preparation(None).apply(features), atol=1e-3)
    if store == "mapped":
        with pytest.raises(SettingError, match="no folder"):
            MemoryPlan(store).prepare(Preparation(None), features, None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    X, y = make_identities(n_identities=12, size=10, dim=8, seed=0)
    HiLander(epochs=2, hidden=8, k=6, p_tau=0.6).fit(X, y).save(folder / "model")
    X, _ = make_identities(n_identities=25, size=12, dim=8, seed=1)
    np.save(folder / "points.npy", X)
    return folder


def test_a_budget_that_is_too_small_is_an_error_before_anything_is_made(trained, capsys):
    model = HiLander.load(trained / "model")
    X = np.load(trained / "points.npy")
    with pytest.raises(SettingError, match="need at least"):
        model.cluster(X, memory="1MB")
    options = ["-m", f"{trained}/model", "-o", f"{trained}/small", "--memory", "1MB"]
    assert main(["cluster", f"{trained}/points.npy", *options]) == 2
    assert "need at least" in capsys.readouterr().err
    assert main(["cluster", f"{trained}/points.npy", *options[:-1], "much"]) == 2
    assert "512MB" in capsys.readouterr().err
    assert not list(trained.glob("small*"))


def test_every_storage_gives_nearly_the_same_clusters(trained, monkeypatch):
    model = HiLander.load(trained / "model")
    X = np.load(trained / "points.npy")
    whole = model.cluster(X)
    np.testing.assert_array_equal(model.cluster(X, memory="8GB").labels(), whole.labels())
    for store in ("float16", "mapped"):
        monkeypatch.setattr(
            inference, "plan_memory", lambda *_, store=store, **__: MemoryPlan(store, 10**9)
        )
        output = trained / f"run-{store}"
        options = ["-m", f"{trained}/model", "-o", str(output), "--memory", "8GB", "--quiet"]
        assert main(["cluster", f"{trained}/points.npy", *options]) == 0
        from hilander import Hierarchy
        from hilander.metrics.scores import bcubed_f

        assert bcubed_f(whole.labels(), Hierarchy.load(output).labels()) > 0.97
    assert not list(trained.glob("*.work"))
