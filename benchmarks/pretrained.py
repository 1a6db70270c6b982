"""The pretrained model: train it, and score it on domains that it was not trained on.

    python -m benchmarks.pretrained train     # writes hilander/linkage/pretrained/
    python -m benchmarks.pretrained validate  # chooses the thresholds of trained models again
    python -m benchmarks.pretrained score     # appends rows: each domain left out, and rivals
    python -m benchmarks.pretrained render    # draws the table of docs/results/model-card.md

`benchmarks.pretrained_sets` makes the training sets. The score on a pair is that of a model that
was trained without the pair's whole domain.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import SHARED, begin_row
from benchmarks.gathering import Choice, gather_members
from benchmarks.offset_bootstrap import OffsetBootstrap
from benchmarks.pretrained_sets import (
    DOMAIN_OF,
    DOMAINS,
    EASY,
    FACE_LIKE,
    SHAPED,
    SMALL,
    Source,
    make_all_episodes,
    make_validation_sets,
    read_sources,
)
from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    find_data,
    put_block,
    read_rows,
)
from hilander import HiLander
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.registry import RIVALS
from hilander.embeddings.preparation import PerSetPreparation, learn_preparation
from hilander.embeddings.validation import as_embeddings
from hilander.hierarchy.rules import DEFAULT_MERGE, Rules
from hilander.io.files import read_embeddings
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings, insert_part
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f, nmi, pairwise_f
from hilander.training.evidence.method import DEFAULT_P_TAU
from hilander.training.evidence.network_training import train_on_episodes
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.thresholds import ThresholdSearch
from hilander.training.model import Model
from hilander.training.stages import Stages

ROWS = RESULTS / "pretrained.jsonl"
CARD = ROOT / "docs" / "results" / "model-card.md"
MARKS = ("<!-- pretrained: begin -->", "<!-- pretrained: end -->")
PRETRAINED = "pretrained"
LABEL_FREE = ("FINCH", "fast_hdbscan", "EVoC", "Leiden", "Infomap")
SCORES = ("pairwise_f", "bcubed_f", "nmi")
TARGET = ROOT / "hilander" / "linkage" / "pretrained"
K = 15  # neighbours of a point, as in `fit`
POINTS_PER_NEIGHBOUR = 10  # a set of fewer than 150 points has fewer neighbours: a tenth of them
SMALL_SET_POINTS = 1000  # largest set that the network for small sets scores
RIVALS_K = 20  # neighbours in the graph of Leiden and Infomap
# Loss of F for each squared unit of log-odds away from the default p_tau. A quarter of the pull of
# `fit`, because there are many more validation sets.
PULL = 0.005
NOISE = 0.3  # standard deviations; more than in `fit`, because new sets come from other embedders
VALIDATION_POINTS = 3000  # points of a validation set, at most
EPOCHS = 24
# The result depends on which training sets are drawn. So each model has members of every draw: the
# fifteen members of three draws are dealt to three models. The first one is shipped.
DRAWS = 3
HANDS: tuple[Choice, ...] = (
    ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0)),
    ((0, 2), (1, 2), (1, 3), (2, 1), (2, 2)),
    ((0, 3), (0, 4), (1, 4), (2, 3), (2, 4)),
)
KEPT = ROOT / "build" / "pretrained"


def make_plan(seed: int) -> EvidencePlan:
    """Network, learning settings and rules of the pretrained model."""
    rules = Rules(
        k=K, points_per_neighbour=POINTS_PER_NEIGHBOUR,
        p_tau=DEFAULT_P_TAU, p_tau_merge=DEFAULT_MERGE, adapt_merges=True,
        search_average=True, decoder="leiden", keep_links=True,
    )  # fmt: skip
    return EvidencePlan(
        network=EvidenceSettings(),
        learning=EvidenceLearning(epochs=EPOCHS, noise=NOISE),
        rules=rules,
        seed=seed,
    )


def train_draw(left_out: str | None, draw: int, verbose: bool = False) -> HiLander:
    """Train both networks on one draw of the sets, without the domain `left_out`."""
    plan = make_plan(draw)
    sources = read_sources(left_out, make_plan(0))
    stages, networks, history, n_points = Stages(None, "", verbose), [], [], 0
    for small_set in (False, True):
        episodes = list(make_all_episodes(sources, draw, with_small=small_set))
        shaped = replace(plan, network=plan.network.for_small_sets()) if small_set else plan
        network, records = train_on_episodes(
            episodes, shaped, stages, "small" if small_set else "large"
        )
        networks.append(network)
        history += records
        n_points += sum(len(one.labels) for one in episodes)
    trained_on = [
        *(source.name for source in sources),
        f"{FACE_LIKE} face-like sets",
        f"{SHAPED + SMALL + 2 * EASY} generated sets of many shapes",
    ]
    summary = {"name": "a draw", "trained_on": trained_on, "n_points": n_points}
    network = join_networks(*networks)
    return make_estimator(draw, Model(network, plan.rules, PerSetPreparation(), history, summary))


def make_estimator(seed: int, model: Model) -> HiLander:
    """An estimator that holds a trained model of no particular embedder."""
    estimator = HiLander(random_state=seed)
    estimator.model_ = model
    return estimator


def make_pretrained(left_out: str | None, hand: int) -> HiLander:
    """Join members of every draw, trained without the domain `left_out`, into one model.

    The thresholds are chosen on held-out identities and on generated sets that no member has seen.
    """
    plan = make_plan(hand)
    draws = [HiLander.load(find_draw(left_out, draw)) for draw in range(DRAWS)]
    network = gather_members([one.network_ for one in draws], HANDS[hand])
    rules, table = choose_thresholds(network, read_sources(left_out, make_plan(0)), plan)
    history = [{"draw": n, **row} for n, one in enumerate(draws) for row in one.history_]
    summary = {
        "name": PRETRAINED,
        "trained_on": draws[0].summary_["trained_on"],
        "draws": DRAWS,
        "n_points": sum(one.summary_["n_points"] for one in draws),
        "validation": table,
    }
    return make_estimator(hand, Model(network, rules, PerSetPreparation(), history, summary))


def join_networks(large: EvidenceNetwork, small: EvidenceNetwork) -> EvidenceNetwork:
    """One network that scores small sets with the second network, all others with the first."""
    settings = replace(large.settings, small_set_points=SMALL_SET_POINTS)
    return insert_part(settings, large, "small_set", small)


def choose_thresholds(
    network: EvidenceNetwork, sources: list[Source], plan: EvidencePlan
) -> tuple[Rules, list[dict[str, Any]]]:
    """Choose the thresholds on the held-out identities of all sources and on generated sets."""
    held_out = [source.held_out for source in sources]
    search = ThresholdSearch(
        network,
        held_out,
        plan.rules,
        most_points=VALIDATION_POINTS,
        extra_sets=make_validation_sets(plan.seed),
        bootstrap=OffsetBootstrap,
    )
    return search.choose(PULL)


def validate_again(folder: Path, left_out: str | None) -> None:
    """Choose the thresholds of a trained model again, as a new training would choose them."""
    estimator = HiLander.load(folder)
    sources = read_sources(left_out, make_plan(0))
    rules, table = choose_thresholds(estimator.network_, sources, make_plan(0))
    summary = estimator.summary_ | {"validation": table}
    estimator.model_ = replace(estimator.model_, rules=rules, summary=summary)
    shutil.rmtree(folder)
    estimator.save(folder)
    print(folder, rules)


def find_draw(left_out: str | None, draw: int) -> Path:
    """Folder of both networks trained on one draw. They are trained if the folder is missing."""
    folder = KEPT / f"draw-{left_out or 'all'}-{draw}"
    if not folder.is_dir():
        train_draw(left_out, draw).save(folder)
    return folder


def locate_pretrained(left_out: str, hand: int = 0) -> Path:
    """Folder of a model trained without one domain, whether it exists or not."""
    return KEPT / f"without-{left_out}-{hand}"


def find_pretrained(left_out: str, hand: int = 0) -> Path:
    """Folder of a model trained without one domain. It is made if the folder is missing."""
    folder = locate_pretrained(left_out, hand)
    if not folder.is_dir():
        make_pretrained(left_out, hand).save(folder)
    return folder


def read_test(name: str) -> tuple[Any, Any]:
    """Features and labels of the test file of a shared pair."""
    file = read_embeddings(find_data() / SHARED[name][1])
    return file.features, file.labels


def cluster_by_rival(name: str, features: Any, seed: int) -> Any:
    """Cluster labels of a method that needs no training labels, at its defaults; -1 is noise.

    The rivals get the same prepared embeddings. The two that need a graph get one of 20 neighbours.
    """
    points = as_embeddings(features)
    prepared = learn_preparation(points).apply(points)
    if name == "EVoC":
        from evoc import EVoC

        return np.asarray(EVoC(random_state=seed).fit_predict(prepared))
    if name == "fast_hdbscan":
        from fast_hdbscan import HDBSCAN

        return np.asarray(HDBSCAN().fit_predict(prepared))
    problem = Problem(prepared, build_knn_graph(prepared, RIVALS_K), seed)
    method, params = {
        "FINCH": (RIVALS["FINCH"], {"level": 0}),
        "Leiden": (RIVALS["Leiden"], {"k": RIVALS_K, "log_resolution": 0.0, "cosine": 0.0}),
        "Infomap": (RIVALS["Infomap"], {"k": RIVALS_K, "cosine": 0.0}),
    }[name]
    state = method.start(problem, None, params)
    return method.cluster(problem, state, params)


def split_noise(labels: Any) -> Any:
    """The same labels, with each noise point (-1) as a cluster of its own."""
    noise = np.flatnonzero(labels < 0)
    labels = labels.copy()
    labels[noise] = labels.max(initial=0) + 1 + np.arange(len(noise))
    return labels


def write_score(name: str, method: str, seed: int, cluster: Callable[[Any], Any]) -> None:
    """Cluster the test file of a pair and append the row."""
    features, labels = read_test(name)
    row = begin_row(name, seed) | {"method": method, "error": None}
    start = time.process_time()
    try:
        found = split_noise(np.asarray(cluster(features)))
        row |= {
            "pairwise_f": pairwise_f(labels, found),
            "bcubed_f": bcubed_f(labels, found),
            "nmi": nmi(labels, found),
            "n_clusters": len(np.unique(found)),
        }
    except Exception as error:  # a rival that fails is a row with its error
        row["error"] = f"{type(error).__name__}: {error}"
    row["cpu_seconds"] = round(time.process_time() - start, 2)
    append_row(ROWS, row)
    print(name, method, seed, {k: row.get(k) for k in ("pairwise_f", "bcubed_f", "nmi", "error")})


def score(n_models: int) -> None:
    """Score models trained without the domain of each pair, and the rivals."""
    for name in SHARED:
        for hand in range(n_models):
            model = HiLander.load(find_pretrained(DOMAIN_OF[name], hand))
            write_score(name, PRETRAINED, hand, model.predict)
        for rival in LABEL_FREE:
            write_score(name, rival, 0, partial(cluster_by_rival, rival, seed=0))


def render() -> None:
    """Write the table of the model card from the rows."""
    text = CARD.read_text(encoding="utf-8")
    CARD.write_text(put_block(text, MARKS, format_rows(read_rows(ROWS))), encoding="utf-8")


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: methods by data sets, Fp / Fb / NMI, the mean over seeds."""
    latest = {(row["dataset"], row["method"], row["seed"]): row for row in rows}
    lines = ["| method | " + " | ".join(SHARED) + " |", "|---" * (len(SHARED) + 1) + "|"]
    for method in (PRETRAINED, *LABEL_FREE):
        cells = []
        for name in SHARED:
            found = [r for (d, m, _), r in latest.items() if (d, m) == (name, method)]
            good = [row for row in found if not row["error"]]
            means = [np.mean([r[key] for r in good]) if good else 0.0 for key in SCORES]
            text = " / ".join(f"{mean:.3f}".lstrip("0") for mean in means)
            cells.append(text if good else (found[0]["error"] if found else "not run"))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["train", "validate", "score", "render"])
    parser.add_argument(
        "--models", type=int, default=1, help="models to score for each domain, up to three"
    )
    args = parser.parse_args(arguments)
    if args.command == "train":
        make_pretrained(None, hand=0).save(TARGET)
    elif args.command == "validate":
        validate_again(TARGET, None)
        for domain in DOMAINS:
            validate_again(find_pretrained(domain), domain)
    elif args.command == "score":
        score(args.models)
    else:
        render()
    return 0


if __name__ == "__main__":
    sys.exit(main())
