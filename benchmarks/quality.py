"""Ablation of the default method, and its scores with few training identities.

    python -m benchmarks.quality ablation [--dataset NAME ...] [--seeds 0 1 2] [--learnt episodes]
    python -m benchmarks.quality identities [--dataset NAME ...] [--seeds 0 1 2] [--numbers 30 100]
    python -m benchmarks.quality render              # the tables of docs/results/quality.md

Every model is trained and tuned on the train file alone. The parts are added one by one: the
paper's model; edge features in place of raw embeddings; episodes of other sizes; merges of clusters
by the links of their points; communities of points; a linear map of the embeddings. Rows of the
first and of the last, the default, come from the comparison. The ablation uses no prior model; the
study of few identities measures that. Rows of other variants are of earlier versions, whose
clusters were merged by classifiers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import SHARED, begin_row, load_labelled
from benchmarks.pretrained import PRETRAINED, find_pretrained
from benchmarks.pretrained import ROWS as PRETRAINED_ROWS
from benchmarks.pretrained_sets import DOMAIN_OF
from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    find_data,
    put_block,
    read_rows,
)
from hilander import HiLander
from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.validation import as_embeddings
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.scorers import CachedScorer
from hilander.io.files import read_embeddings
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.metrics.scores import bcubed_f, nmi, pairwise_f
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.network_training import train_evidence, train_on_episodes
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.prior import PriorModel, read_prior
from hilander.training.evidence.recipe import choose_rules, train_trial
from hilander.training.evidence.thresholds import VALIDATION_POINTS, ThresholdSearch
from hilander.training.map_choice import can_validate_maps
from hilander.training.methods import find_method
from hilander.training.model import Model
from hilander.training.split import choose_held_out
from hilander.training.stages import Stages

ROWS = RESULTS / "quality.jsonl"
COMPARISON = RESULTS / "comparison.jsonl"
PAGE = ROOT / "docs" / "results" / "quality.md"
ABLATION_MARKS = ("<!-- ablation: begin -->", "<!-- ablation: end -->")
IDENTITY_MARKS = ("<!-- identities: begin -->", "<!-- identities: end -->")
SCORES = ("pairwise_f", "bcubed_f", "nmi")
PAPER, DEFAULT = "the paper's model", "+ a map of the embeddings (the default)"
OF_COMPARISON = {"Hi-LANDER (paper)": PAPER, "hilander (default)": DEFAULT}
# For each training recipe its variants, and the decoder of each.
STEPS = {
    "evidence": {"+ edge features": "parents"},
    "episodes": {
        "+ sets of other sizes": "parents",
        "+ merges by links": "contract",
        "+ communities of points": "leiden",
    },
}
SEEDS = 3
N_IDENTITIES = (10, 30, 100)
ALONE, WITH_PRIOR = "alone", "with prior"


def learn_steps(
    known: Episode, plan: EvidencePlan, learnt: Sequence[str]
) -> dict[str, EvidenceNetwork]:
    """Train one network for each recipe of `learnt`."""
    stages, networks = Stages(None, "", False), {}
    if "evidence" in learnt:
        networks["evidence"], _ = train_on_episodes([known], plan, stages, "evidence")
    if "episodes" in learnt:
        networks["episodes"], _ = train_evidence(known, plan, stages, "episodes")
    return networks


def run_ablation(
    name: str, seed: int, learnt: Sequence[str] = tuple(STEPS)
) -> Iterator[dict[str, Any]]:
    """Rows of these recipes on one pair, without a map of the embeddings.

    The rows of the paper's model and of the default are in the comparison.
    """
    features, labels, test, truth = read_pair(name)
    model = HiLander(random_state=seed, whiten=False)
    method = find_method(model.method)
    plan = method.plan(model, features, labels)
    preparation = method.prepare(model, features, labels, plan)
    points, others = preparation.apply(features), preparation.apply(test)
    held = choose_held_out(labels, plan)
    unseen = Episode(points[held], labels[held])
    trials = learn_steps(Episode(points[~held], labels[~held]), plan, learnt)
    networks = learn_steps(Episode(points, labels), plan, learnt)
    graph = build_knn_graph(others, plan.rules.k)
    for step in learnt:
        search = ThresholdSearch(
            trials[step], [unseen], plan.rules, seed=seed, most_points=VALIDATION_POINTS
        )
        score = CachedScorer(EvidenceScorer(networks[step], plan.device))
        for variant, decoder in STEPS[step].items():
            search.rules = replace(plan.rules, decoder=decoder)
            rules = search.choose()[0]
            found = Hierarchy.of_steps(walk_levels(others, score, rules, graph=graph)).labels(-1)
            yield {
                "study": "ablation", "variant": variant,
                "params": {"p_tau": rules.p_tau, "p_tau_merge": rules.p_tau_merge},
                **score_labels(truth, found),
            }  # fmt: skip


def read_left_out_model(name: str, seed: int, labels: IntArray) -> PriorModel | None:
    """The pretrained model without the domain of a pair, as prior for these training labels."""
    folder = find_pretrained(DOMAIN_OF[name], seed)
    return read_prior(str(folder), len(np.unique(labels)), len(labels))


def run_identities(
    name: str, seed: int, numbers: Sequence[int] = N_IDENTITIES
) -> Iterator[dict[str, Any]]:
    """Rows of models trained on fewer identities: alone, and with a prior model.

    The prior is a pretrained model that was trained without the domain.
    """
    features, labels, test, truth = read_pair(name)
    order = np.random.default_rng([seed, 9]).permutation(np.unique(labels))
    counts = sorted({min(n, len(order)) for n in numbers})
    for n in counts:
        some = np.isin(labels, order[:n])
        found = cluster_by_few(features[some], labels[some], test, name, seed)
        for variant, clusters in found.items():
            yield {
                "study": "identities", "variant": variant, "n_identities": n,
                "n_train": int(some.sum()), **score_labels(truth, clusters),
            }  # fmt: skip


def cluster_by_few(
    features: FloatArray, labels: IntArray, test: FloatArray, name: str, seed: int
) -> dict[str, IntArray]:
    """Train once, and cluster the test file without and with the prior model."""
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    model = HiLander(random_state=seed, prior="none")
    method = find_method(model.method)
    plan = method.plan(model, features, labels)
    preparation = method.prepare(model, features, labels, plan)
    everything = Episode(preparation.apply_to_training_set(features), labels)
    held, stages = choose_held_out(labels, plan), Stages(None, "", False)
    trial = train_trial(everything, held, plan, stages) if held.any() else None
    network, _ = train_evidence(everything, plan, stages, "train")
    clusters = {}
    for variant, prior in ((ALONE, None), (WITH_PRIOR, read_left_out_model(name, seed, labels))):
        if prior is not None and not can_validate_maps(labels):  # `fit` whitens each set then
            preparation = replace(preparation, whitens_each_set=True)
        joined = network if prior is None else prior.join(network)
        rules, _ = choose_rules(everything, held, plan, stages, prior, trial)
        model.model_ = Model(joined, rules, preparation)
        clusters[variant] = model.predict(test)
    return clusters


def score_labels(truth: IntArray, found: IntArray) -> dict[str, Any]:
    """Scores of a clustering, as part of a row."""
    return {
        "pairwise_f": pairwise_f(truth, found),
        "bcubed_f": bcubed_f(truth, found),
        "nmi": nmi(truth, found),
        "n_clusters": len(np.unique(found)),
    }


def read_pair(name: str) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Train features and labels (from 0), test features and labels."""
    features, labels = load_labelled(name)
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    test = read_embeddings(find_data() / SHARED[name][1])
    return as_embeddings(features), codes, as_embeddings(test.features), test.labels


def mean_scores(rows: Sequence[dict[str, Any]]) -> str:
    """Fp / Fb / NMI, the mean over seeds; the number of seeds if it is below `SEEDS`."""
    if not rows:
        return "not run"
    means = [np.mean([row[name] for row in rows]) for name in SCORES]
    text = " / ".join(f"{mean:.3f}".lstrip("0") for mean in means)
    return text if len(rows) >= SEEDS else f"{text} ({len(rows)} of {SEEDS} seeds)"


def format_ablation(rows: Sequence[dict[str, Any]], compared: Sequence[dict[str, Any]]) -> str:
    """A Markdown table: parts by data sets; the first and the last are rows of the comparison."""
    latest = {
        (row["variant"], row["dataset"], row["seed"]): row
        for row in rows
        if row["study"] == "ablation"
    }
    for row in compared:
        if row["method"] in OF_COMPARISON and not row["error"]:
            latest[OF_COMPARISON[row["method"]], row["dataset"], row["seed"]] = row
    steps = (variant for decoders in STEPS.values() for variant in decoders)
    variants = [PAPER, *steps, DEFAULT]
    lines = ["| Fp / Fb / NMI | " + " | ".join(SHARED) + " |", "|---" * (len(SHARED) + 1) + "|"]
    for variant in variants:
        cells = [
            mean_scores([row for key, row in latest.items() if key[:2] == (variant, name)])
            for name in SHARED
        ]
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def format_identities(rows: Sequence[dict[str, Any]], pretrained: Sequence[dict[str, Any]]) -> str:
    """A Markdown table: models of few identities alone, with the prior model, and the prior."""
    rows = [row for row in rows if row["study"] == "identities"]
    latest = {
        (row["dataset"], row["n_identities"], row["variant"], row["seed"]): row
        for row in rows
        if row["variant"] in (ALONE, WITH_PRIOR)
    }
    prior = {(r["dataset"], r["seed"]): r for r in pretrained if r["method"] == PRETRAINED}
    lines = ["| data set | identities | points | alone | with the prior |", "|---" * 5 + "|"]
    for name in SHARED:
        prior_rows = [row for (dataset, _), row in prior.items() if dataset == name]
        lines.append(f"| {name} | 0 | 0 | | {mean_scores(prior_rows)} (the prior alone) |")
        for n in sorted({key[1] for key in latest if key[0] == name}):
            cells = [
                [row for key, row in latest.items() if key[:3] == (name, n, variant)]
                for variant in (ALONE, WITH_PRIOR)
            ]
            points = round(np.mean([row["n_train"] for cell in cells for row in cell]))
            texts = " | ".join(map(mean_scores, cells))
            lines.append(f"| {name} | {n} | {points:,} | {texts} |")
    return "\n".join(lines)


def render() -> None:
    """Write the tables of the page from the rows."""
    rows = read_rows(ROWS)
    text = PAGE.read_text(encoding="utf-8")
    text = put_block(text, ABLATION_MARKS, format_ablation(rows, read_rows(COMPARISON)))
    text = put_block(text, IDENTITY_MARKS, format_identities(rows, read_rows(PRETRAINED_ROWS)))
    PAGE.write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["ablation", "identities", "render"])
    parser.add_argument("--dataset", nargs="+", choices=list(SHARED), default=list(SHARED))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(SEEDS)))
    parser.add_argument("--numbers", type=int, nargs="+", default=N_IDENTITIES)
    parser.add_argument("--learnt", nargs="+", choices=list(STEPS), default=list(STEPS))
    args = parser.parse_args(arguments)
    if args.command == "render":
        render()
        return 0
    identities = partial(run_identities, numbers=args.numbers)
    ablation = partial(run_ablation, learnt=args.learnt)
    run = {"ablation": ablation, "identities": identities}[args.command]
    for seed in args.seeds:
        for name in args.dataset:
            start = begin_row(name, seed)
            for row in run(name, seed):
                append_row(ROWS, start | row)
                print(name, seed, row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
