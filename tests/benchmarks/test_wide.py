import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import pretrained, wide, wide_page, wide_sets, wide_worker
from benchmarks.rows import put_block, read_rows
from benchmarks.wide import Plan, run_source, score_draws, select_unmeasured
from benchmarks.wide_page import collect_cells, compare_with, format_group, format_page
from benchmarks.wide_sets import SETS, Part, StoredSource, choose_sets, draw_set
from benchmarks.wide_worker import FITTED, METHODS, PRETRAINED, Job, cluster_draws, result_files
from hilander.comparison.pair import prepare_pair
from hilander.comparison.rivals.registry import RIVALS
from hilander.comparison.runner import Limits
from hilander.errors import SettingError
from hilander.synthetic.face_like import PRESETS
from hilander.synthetic.identities import make_identities

ROW = {
    "dataset": "flowers", "dataset_hash": "a", "method": FITTED, "seed": 0, "commit": "c1",
    "machine": "m", "pairwise_f": 0.5, "bcubed_f": 0.6, "nmi": 0.7, "refused": 0, "error": None,
}  # fmt: skip
NO_MODEL = {"pairwise_f": None, "bcubed_f": None, "nmi": None, "error": "missing: a model"}


def make_row(dataset="flowers", method=FITTED, bcubed_f=0.6, **values):
    return ROW | {"dataset": dataset, "method": method, "bcubed_f": bcubed_f} | values


def fail_row(dataset, method, error="ValueError: no"):
    return make_row(dataset, method, None, error=error)


@pytest.fixture(scope="module")
def drawn():
    """The sets `flowers` and `flowers/singles` of a source of 20 easy identities."""
    train = make_identities(n_identities=20, size=8, spread=0.3, seed=0)
    test = make_identities(n_identities=20, size=8, spread=0.3, seed=1)
    part = Part(test[0], prepare_pair("flowers", train, test))
    singles = replace(SETS["faces/singles"], name="flowers/singles", source="flowers")
    return [draw_set(SETS["flowers"], part), draw_set(singles, part)]


def make_job(folder, drawn, method, seeds=(0,)):
    source, output = folder / "source", folder / "output"
    source.mkdir()
    output.mkdir()
    StoredSource.write(drawn, source)
    sets = {one.spec.name: len(one.draws) for one in drawn}
    return Job(method, str(source), str(output), seeds, sets, {}), output


def test_the_suite_has_every_kind_of_set_and_each_face_like_set_has_fewer_than_15000_points():
    assert {one.group for one in SETS.values()} == set(wide_sets.GROUPS)
    scales = wide_sets.TRAIN_SCALES | wide_sets.TEST_SCALES
    for name, (train, test) in wide_sets.FACE_LIKE.items():
        assert SETS[name].source == train
        for preset, scale in ((train, scales[train]), (test, scales[name])):
            assert 5_000 < PRESETS[preset].scaled(scale).n_points < 15_000


def test_rivals_can_find_identities_of_more_than_100_points():
    values = {
        (name, axis.name): axis.values for name, rival in RIVALS.items() for axis in rival.axes
    }
    assert max(values["EVoC", "base_min_cluster_size"]) >= 100
    assert max(values["fast_hdbscan", "min_cluster_size"]) >= 100
    assert min(values["Leiden", "log_resolution"]) < 0
    assert 2 ** max(values["FINCH", "level"]) > 15_000


def test_sets_are_chosen_by_name_or_group_and_an_unknown_one_is_refused():
    names = [one.name for one in choose_sets(["singles", "hannah"])]
    assert names == ["hannah", "omniglot/singles", "faces/singles"]
    with pytest.raises(SettingError, match="'hanna' is not known"):
        choose_sets(["hanna"])
    with pytest.raises(SettingError, match="did you mean 'Leiden'"):
        wide.choose_methods(["Laiden"])


def test_single_points_are_one_of_each_identity_and_all_apart_scores_1():
    labels = np.random.default_rng(0).integers(0, 30, 400)
    (rows,) = wide_sets.draw_singles(labels)
    assert sorted(labels[rows]) == list(range(30))
    assert score_draws([labels[rows]], {0: np.arange(30)})["bcubed_f"] == 1
    assert score_draws([labels[rows]], {0: np.zeros(30, dtype=int)})["bcubed_f"] < 0.1


def test_sets_of_few_points_have_that_many_and_skip_sizes_that_are_impossible():
    labels = np.repeat(np.arange(51), 30)
    assert [len(rows) for rows in wide_sets.draw_few(labels, 100)] == [100] * 5
    assert [len(rows) for rows in wide_sets.draw_few(labels, 1000)] == [1000]


def test_an_album_has_one_dominant_identity():
    labels = np.concatenate([np.repeat([0, 1], 60), np.repeat(np.arange(2, 150), 3)])
    albums = wide_sets.draw_albums(labels)
    assert len(albums) == 12
    assert all(np.bincount(labels[rows]).max() >= 0.5 * len(rows) for rows in albums)


def test_a_digest_depends_on_the_draws(drawn):
    other = replace(drawn[1], draws=[drawn[1].draws[0][::-1]])
    assert len({drawn[0].digest, drawn[1].digest, other.digest}) == 3


def test_a_worker_clusters_every_set_for_each_seed_without_test_labels(drawn, tmp_path):
    job, output = make_job(tmp_path, drawn, "Leiden", (0, 1))
    wide_worker.run_job(job)
    for seed in (0, 1):
        row = wide.read_result(drawn[0], output, seed, "failure")
        assert row["error"] is None
        assert row["bcubed_f"] > 0.9
        assert set(row["params"]) == {"k", "log_resolution"}
        assert row["seconds"] >= 0
    for file in (tmp_path / "source").glob("points-*.npz"):
        assert set(np.load(file).files) == {"raw", "prepared"}


def test_untuned_methods_get_the_raw_points_and_tuned_ones_the_prepared(drawn, tmp_path):
    job, _ = make_job(tmp_path, drawn, "FINCH (untuned)")
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            wide_worker, "cluster_by_rival", lambda name, X, seed: seen.append((name, X)) or [0]
        )
        wide_worker.run_job(job)
    assert [name for name, _ in seen] == ["FINCH", "FINCH"]
    np.testing.assert_array_equal(seen[0][1], drawn[0].part.raw)


def test_a_refused_draw_counts_as_all_apart_and_a_failure_is_an_error(drawn, tmp_path):
    _, output = make_job(tmp_path, [replace(drawn[0], draws=drawn[0].draws * 2)], "FINCH")
    stored, calls = StoredSource(tmp_path / "source"), []

    def refuse_first(points):
        calls.append(points)
        if len(calls) == 1:
            raise ValueError("too few")
        return np.zeros(len(points.raw), dtype=int)

    found, record = cluster_draws(refuse_first, stored, "flowers", 2)
    assert list(found) == [1]
    assert record["error"] is None
    truth = np.array([0, 0, 1])
    row = score_draws([truth, truth], {1: truth})
    assert row["refused"] == 1
    assert row["pairwise_f"] == 0.5  # 0 where all are apart, 1 where the clusters are right

    def fail(points):
        raise RuntimeError("out of\nluck")

    found, record = cluster_draws(fail, stored, "flowers", 2)
    assert (found, record["error"]) == ({}, "RuntimeError: out of luck")
    result_files(output, "flowers", 0)[1].write_text(json.dumps(record))
    assert wide.read_result(drawn[0], output, 0, "")["error"] == "RuntimeError: out of luck"


def test_rows_of_a_run_are_complete_and_only_missing_results_are_run_again(drawn, tmp_path):
    plan = Plan(1, 1, rows=tmp_path / "rows.jsonl")
    run_source(drawn, [METHODS["FINCH"]], plan)
    rows = read_rows(plan.rows)
    assert [row["dataset"] for row in rows] == ["flowers", "flowers/singles"]
    assert all(row["error"] is None for row in rows)
    needed = {"commit", "machine", "dataset_hash", "seed", "seconds", "bcubed_f", "group", "kind"}
    assert needed <= set(rows[0])
    run_source(drawn, [METHODS["FINCH"]], plan, missing=True)
    assert len(read_rows(plan.rows)) == 2
    assert select_unmeasured(METHODS["FINCH"], drawn, plan) == []
    more = replace(plan, seeds=2)
    assert select_unmeasured(METHODS["FINCH"], drawn, more) == []  # does not vary
    assert select_unmeasured(METHODS["Leiden"], drawn, plan) == drawn
    other = replace(drawn[0], draws=[drawn[0].draws[0][:50]])
    assert select_unmeasured(METHODS["FINCH"], [other], plan) == [other]


def test_a_process_that_exceeds_its_limit_is_a_row_with_the_error(drawn, tmp_path):
    plan = Plan(1, 1, Limits(seconds=0.01), tmp_path / "rows.jsonl")
    run_source(drawn[:1], [METHODS["FINCH"]], plan)
    (row,) = read_rows(plan.rows)
    assert row["error"].startswith("time limit")
    assert select_unmeasured(METHODS["FINCH"], drawn[:1], plan) == drawn[:1]


def test_a_model_that_was_not_made_is_a_row_with_an_error(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "KEPT", tmp_path / "none")
    plan = Plan(1, 1, rows=tmp_path / "rows.jsonl")
    run_source(drawn[:1], [METHODS[PRETRAINED]], plan)
    (row,) = read_rows(plan.rows)
    assert row["error"].startswith("missing: without-flowers-0")
    assert not (tmp_path / "none").exists()
    (tmp_path / "none" / "without-flowers-1").mkdir(parents=True)
    assert list(wide.find_models("flowers", 3)) == [1]
    assert wide.find_models("trillionpairs", 3) == {0: wide.SHIPPED}


def test_a_source_without_its_files_is_skipped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HILANDER_DATA", str(tmp_path))
    rows = tmp_path / "rows.jsonl"
    assert wide.main(["run", "--sets", "flowers", "--rows", str(rows)]) == 0
    assert "flowers: skipped" in capsys.readouterr().err
    assert not rows.exists()


def test_ranks_means_and_the_worst_set_follow_from_the_rows():
    rows = [
        make_row("flowers", FITTED, 0.9), make_row("flowers", "HAC", 0.5),
        make_row("flowers", "Leiden", 0.7),
        make_row("faces", FITTED, 0.6), make_row("faces", "HAC", 0.8),
        fail_row("faces", "Leiden"),
        make_row("omniglot", "HAC", 1.0),
    ]  # fmt: skip
    one = compare_with(collect_cells(rows), FITTED, ["HAC", "Leiden"])
    assert (one.n_sets, one.n_rivals, one.rank) == (2, 2, 1.5)
    assert one.bcubed_f == pytest.approx(0.75)
    assert one.best == pytest.approx(0.75)
    assert (one.worst_set, one.worst_rival) == ("faces", "HAC")
    assert one.difference == pytest.approx(-0.2)
    line = "| fitted | 2, tuned and untuned | 2 | 1.50 of 3 | .750 | .750 | faces: -0.200 (HAC) |"
    assert line in format_page(rows)


def test_a_failure_counts_as_0_and_a_missing_model_does_not_count():
    rows = [make_row("flowers", "HAC", 0.5), make_row("faces", "HAC", 0.5)]
    failed = [*rows, make_row("faces", PRETRAINED, 0.8), fail_row("flowers", PRETRAINED)]
    one = compare_with(collect_cells(failed), PRETRAINED, ["HAC"])
    assert (one.n_sets, one.rank, one.bcubed_f) == (2, 1.5, 0.4)
    missing = [*rows, make_row("faces", PRETRAINED, 0.8), ROW | NO_MODEL | {"method": PRETRAINED}]
    one = compare_with(collect_cells(missing), PRETRAINED, ["HAC"])
    assert (one.n_sets, one.rank, one.bcubed_f) == (1, 1.0, 0.8)


def test_rows_of_the_last_commit_and_data_count_and_a_seed_that_failed_lowers_the_mean():
    old = [make_row(seed=seed, bcubed_f=0.1) for seed in range(3)]
    new = [make_row(seed=0, bcubed_f=0.8, commit="c2")]
    assert collect_cells(old + new)["flowers", FITTED].bcubed_f == 0.8
    other = [make_row(method="HAC", dataset_hash="b")]
    assert list(collect_cells(old + other)) == [("flowers", "HAC")]
    half = [make_row(bcubed_f=0.8), fail_row("flowers", FITTED) | {"seed": 1}]
    assert collect_cells(half)["flowers", FITTED].bcubed_f == 0.4
    for rows in ([ROW | NO_MODEL, make_row(seed=1)], [make_row(seed=1), ROW | NO_MODEL]):
        assert collect_cells(rows)["flowers", FITTED].bcubed_f == 0.6


def test_a_table_has_the_best_of_each_score_in_bold_and_lists_errors():
    rows = [
        make_row(refused=1),
        make_row(method="HAC", bcubed_f=0.9, pairwise_f=0.2),
        fail_row("flowers", "Leiden", "time limit"),
        ROW | NO_MODEL | {"method": PRETRAINED, "dataset": "faces"},
    ]
    table = format_group(collect_cells(rows), "pairs").splitlines()
    at = [name.strip() for name in table[0].split("|")].index("flowers")
    cells = {line.split("|")[1].strip(): line.split("|")[at].strip() for line in table[2:16]}
    assert cells[FITTED] == "**.500** / .600 / **.700** †"
    assert cells["HAC"] == ".200 / **.900** / **.700**"
    assert cells["Leiden"] == "*failed*"
    assert cells["FINCH"] == "not run"
    assert "*missing*" in "\n".join(table)
    assert table[-1] == "- Leiden on flowers: time limit"


def test_the_page_is_drawn_from_its_rows_and_states_the_scales():
    text = wide_page.PAGE.read_text(encoding="utf-8")
    assert wide_page.MARKS[0] in text
    assert text == put_block(text, wide_page.MARKS, format_page(read_rows(wide_page.ROWS)))
    assert all(str(scale) in text for scale in wide_sets.TEST_SCALES.values())
