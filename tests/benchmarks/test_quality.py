from functools import partial

import numpy as np
import pytest
import torch

from benchmarks import quality
from benchmarks.datasets import SHARED
from benchmarks.quality import (
    DEFAULT,
    PAPER,
    STEPS,
    format_ablation,
    format_identities,
    learn_steps,
    main,
    mean_scores,
    score_labels,
)
from benchmarks.rows import append_row, put_block, read_rows
from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.evidence.network_training import train_evidence
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.methods import find_method
from hilander.training.stages import Stages

FIRST, SECOND, *_ = SHARED
QUIET = Stages(None, "", verbose=False)
LAST = "+ communities of points"


def row(**changes):
    scores = {"pairwise_f": 0.5, "bcubed_f": 0.25, "nmi": 0.75}
    base = {"study": "ablation", "variant": LAST, "dataset": FIRST, "seed": 0, "n_train": 1000}
    return {**base, **scores, **changes}


def paper_row(**changes):
    return row(**{"method": "Hi-LANDER (paper)", "error": None, **changes})


def cells_of(table, name):
    (line,) = (line for line in table.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


# The tables.


@pytest.fixture
def one_seed_is_enough(monkeypatch):
    monkeypatch.setattr(quality, "SEEDS", 1)


def test_a_cell_of_fewer_seeds_shows_their_number():
    rows = [row(seed=seed) for seed in range(3)]
    assert cells_of(format_ablation(rows, []), LAST)[0] == ".500 / .250 / .750"
    few = cells_of(format_ablation(rows[:2], []), LAST)[0]
    assert few == ".500 / .250 / .750 (2 of 3 seeds)"


@pytest.mark.usefixtures("one_seed_is_enough")
def test_a_cell_is_the_mean_over_seeds_without_leading_zeros():
    assert mean_scores([row(), row(pairwise_f=0.6)]) == ".550 / .250 / .750"
    assert mean_scores([row(pairwise_f=1.0)]) == "1.000 / .250 / .750"
    assert mean_scores([]) == "not run"


@pytest.mark.usefixtures("one_seed_is_enough")
def test_every_part_has_a_line_and_missing_results_are_shown_as_not_run():
    table = format_ablation([row(), row(dataset=SECOND, bcubed_f=0.5)], [])
    assert cells_of(table, LAST)[:2] == [".500 / .250 / .750", ".500 / .500 / .750"]
    variants = [variant for decoders in STEPS.values() for variant in decoders]
    assert len(table.splitlines()) == 2 + 2 + len(variants)
    for variant in {PAPER, DEFAULT, *variants} - {LAST}:
        assert set(cells_of(table, variant)) == {"not run"}
    assert len({line.count("|") for line in table.splitlines()}) == 1


@pytest.mark.usefixtures("one_seed_is_enough")
def test_the_last_row_of_a_seed_counts_and_other_studies_do_not():
    rows = [row(bcubed_f=0.9), row(bcubed_f=0.3), row(seed=1, bcubed_f=0.5)]
    rows.append(row(study="identities", variant="pretrained", n_identities=50))
    assert cells_of(format_ablation(rows, []), LAST)[0] == ".500 / .400 / .750"


@pytest.mark.usefixtures("one_seed_is_enough")
def test_the_first_and_the_last_are_taken_from_the_comparison_where_they_did_not_fail():
    rows = [paper_row(bcubed_f=0.5), paper_row(seed=1, error="out of memory", bcubed_f=None)]
    rows.append({**paper_row(bcubed_f=0.1), "method": "LANDER"})
    rows += [paper_row(method="hilander (default)", bcubed_f=score) for score in (0.8, 0.9)]
    table = format_ablation([row(bcubed_f=0.2)], rows)
    assert cells_of(table, PAPER)[0] == ".500 / .500 / .750"
    assert cells_of(table, DEFAULT)[0] == ".500 / .900 / .750"
    assert cells_of(table, LAST)[0] == ".500 / .200 / .750"
    assert table.splitlines()[-1].startswith(f"| {DEFAULT} |")


@pytest.mark.usefixtures("one_seed_is_enough")
def test_identities_are_in_the_order_of_the_data_sets_and_of_their_number():
    shape = {"study": "identities", "variant": "alone"}
    rows = [row(**shape, dataset=SECOND, n_identities=50), row(**shape, n_identities=291)]
    rows += [row(**shape, n_identities=50), row(**shape, n_identities=50, seed=1, n_train=3001)]
    rows += [row(study="identities", variant="with prior", n_identities=50, bcubed_f=0.5), row()]
    rows.append(
        row(study="identities", variant="pretrained", n_identities=50)
    )  # of an earlier study
    priors = [row(method="pretrained", bcubed_f=0.3), row(method="EVoC", bcubed_f=0.1)]
    lines = format_identities(rows, priors).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    both = "| .500 / .250 / .750 | .500 / .500 / .750 |"
    alone = "| .500 / .250 / .750 | not run |"
    assert lines[2:7] == [
        f"| {FIRST} | 0 | 0 | | .500 / .300 / .750 (the prior alone) |",
        f"| {FIRST} | 50 | 1,667 {both}",
        f"| {FIRST} | 291 | 1,000 {alone}",
        f"| {SECOND} | 0 | 0 | | not run (the prior alone) |",
        f"| {SECOND} | 50 | 1,000 {alone}",
    ]


@pytest.mark.usefixtures("one_seed_is_enough")
def test_rendering_changes_what_is_between_the_marks(tmp_path, monkeypatch):
    page, rows = tmp_path / "page.md", tmp_path / "rows.jsonl"
    marks = [*quality.ABLATION_MARKS, *quality.IDENTITY_MARKS]
    page.write_text("head\n{}\nold\n{}\nbetween\n{}\n{}\ntail\n".format(*marks), encoding="utf-8")
    append_row(rows, row())
    for name, path in (("PAGE", page), ("ROWS", rows), ("COMPARISON", tmp_path / "none.jsonl")):
        monkeypatch.setattr(quality, name, path)
    assert main(["render"]) == 0
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert text.startswith("head\n")
    assert "\nbetween\n" in text
    assert text.endswith("tail\n")
    assert cells_of(text, LAST)[0] == ".500 / .250 / .750"
    assert main(["render"]) == 0
    assert page.read_text(encoding="utf-8") == text


def test_the_page_of_quality_is_drawn_from_its_rows():
    text = quality.PAGE.read_text(encoding="utf-8")
    rows = read_rows(quality.ROWS)
    tables = {
        quality.ABLATION_MARKS: format_ablation(rows, read_rows(quality.COMPARISON)),
        quality.IDENTITY_MARKS: format_identities(rows, read_rows(quality.PRETRAINED_ROWS)),
    }
    for marks, table in tables.items():
        assert all(text.count(mark) == 1 for mark in marks)
        assert text == put_block(text, marks, table)


# What is measured.


def test_the_last_step_is_the_default_method_but_for_the_map():
    from hilander import HiLander

    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    rules = find_method("evidence").plan(HiLander(), X, y).rules
    assert STEPS["episodes"][LAST] == rules.decoder


def test_a_clustering_is_scored_as_the_library_scores_it():
    truth = np.array([0, 0, 1, 1])
    assert score_labels(truth, truth) == pytest.approx(
        {"pairwise_f": 1, "bcubed_f": 1, "nmi": 1, "n_clusters": 2}
    )
    assert score_labels(truth, np.zeros(4, dtype=np.int64))["n_clusters"] == 1


# What is learnt for the ablation.


@pytest.fixture
def tiny_plan(monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 3)
    return EvidencePlan(
        network=EvidenceSettings(hidden=8),
        learning=EvidenceLearning(epochs=1, batch_size=32, most_points=60),
        rules=Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True),
        device="cpu",
    )


def test_recipes_differ_in_their_training_sets_and_the_last_is_that_of_fit(tiny_plan):
    known = Episode(*make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=0))
    every = learn_steps(known, tiny_plan, list(STEPS))
    assert list(every) == list(STEPS)
    assert not equal(every["episodes"], every["evidence"])
    alone = learn_steps(known, tiny_plan, ["episodes"])
    assert list(alone) == ["episodes"]
    assert equal(alone["episodes"], every["episodes"])
    assert equal(train_evidence(known, tiny_plan, QUIET, "train")[0], every["episodes"])


def equal(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("n", [6, 20])  # too few to hold any out, and enough
def test_few_identities_are_clustered_as_by_fit_with_and_without_prior(n, tiny_plan, monkeypatch):
    from hilander import HiLander
    from hilander.linkage.storage import PRETRAINED

    monkeypatch.setattr(quality, "find_pretrained", lambda *_: PRETRAINED)
    small = {"learning": tiny_plan.learning, "device": "cpu"}
    monkeypatch.setattr(quality, "HiLander", partial(HiLander, **small))
    X, y = make_identities(n_identities=n, size=8, dim=16, spread=0.5, seed=0)
    test, _ = make_identities(n_identities=30, size=8, dim=16, spread=0.5, seed=1)
    found = quality.cluster_by_few(X, y, test, FIRST, 0)
    for variant, prior in (("alone", "none"), ("with prior", "pretrained")):
        expected = HiLander(**small, random_state=0, prior=prior).fit(X, y).predict(test)
        np.testing.assert_array_equal(found[variant], expected)
