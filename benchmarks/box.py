"""The model in the box: train it, and score it on domains that it has not seen.

    python -m benchmarks.box train            # writes hilander/model/box/
    python -m benchmarks.box judge            # chooses the thresholds of trained ones anew
    python -m benchmarks.box score            # rows: each domain left out, beside label-free rivals
    python -m benchmarks.box render           # the tables of docs/model-card.md

What it learns from is in `benchmarks.box_sets`. A score on a pair is that of a model trained
without the pair's whole domain.
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

from benchmarks.box_sets import (
    DOMAIN_OF,
    DOMAINS,
    EASY,
    FACE_LIKE,
    SHAPED,
    SMALL,
    Source,
    make_all_episodes,
    make_judged_sets,
    read_sources,
)
from benchmarks.datasets import SHARED, begin_row
from benchmarks.gathering import Hand, gather_members
from benchmarks.offset_bootstrap import OffsetBootstrap
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
from hilander.hierarchy.rules import Rules
from hilander.io.files import read_embeddings
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings, insert_part
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f, nmi, pairwise_f
from hilander.training.evidence.network_training import train_on_episodes
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.thresholds import ThresholdSearch
from hilander.training.paper.recipe import Stages
from hilander.training.plans import DEFAULT_P_TAU

ROWS = RESULTS / "box.jsonl"
CARD = ROOT / "docs" / "model-card.md"
MARKS = ("<!-- box: begin -->", "<!-- box: end -->")
LABEL_FREE = ("FINCH", "fast_hdbscan", "EVoC", "Leiden", "Infomap")
SCORES = ("pairwise_f", "bcubed_f", "nmi")
TARGET = ROOT / "hilander" / "linkage" / "pretrained"
K, POINTS_FOR_EACH = 15, 10
FEW_POINTS = 1000  # up to which the network that has seen small sets judges
RIVALS_K = 20
# What of F on held-out sets may be given up for more careful merges: in a domain of another kind
# two identities that are merged are lost, two pieces that are not are easily seen.
CAREFUL = 0.01
# Towards the usual p_tau: a quarter of what `fit` takes, for many more sets judge.
PULL = 0.005
NOISE = 0.3  # more than `fit` takes: the sets to come are of other embedders
JUDGED_POINTS = 3000
EPOCHS = 24
# What is learned depends on which sets are drawn. Each box has members of every draw; the fifteen
# members of three draws are dealt to three boxes, the first of which is shipped.
DRAWS = 3
HANDS: tuple[Hand, ...] = (
    ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0)),
    ((0, 2), (1, 2), (1, 3), (2, 1), (2, 2)),
    ((0, 3), (0, 4), (1, 4), (2, 3), (2, 4)),
)
KEPT = ROOT / "build" / "box"


def make_plan(seed: int) -> EvidencePlan:
    """What the model is and how it learns."""
    rules = Rules(
        k=K, points_per_neighbour=POINTS_FOR_EACH, p_tau=DEFAULT_P_TAU, p_tau_merge=DEFAULT_P_TAU,
        search_average=True, decoder="leiden", keep_links=True,
    )  # fmt: skip
    return EvidencePlan(
        network=EvidenceSettings(relative_sizes=True, set_context=True),
        learning=EvidenceLearning(epochs=EPOCHS, noise=NOISE),
        rules=rules,
        seed=seed,
    )


def train_draw(left_out: str | None, draw: int, verbose: bool = False) -> HiLander:
    """Train both networks on one draw of the sets, without one domain if asked."""
    plan = make_plan(draw)
    sources = read_sources(left_out, make_plan(0))
    stages, networks, history, n_points = Stages(None, "", verbose), [], [], 0
    for small_set in (False, True):
        episodes = list(make_all_episodes(sources, draw, with_small=small_set))
        shaped = replace(plan, network=plan.network.for_small_sets()) if small_set else plan
        network, records = train_on_episodes(
            episodes, shaped, stages, "few" if small_set else "many"
        )
        networks.append(network)
        history += records
        n_points += sum(len(one.labels) for one in episodes)
    trained_on = [
        *(source.name for source in sources),
        f"{FACE_LIKE} face-like sets",
        f"{SHAPED + SMALL + 2 * EASY} generated sets of many shapes",
    ]
    model = HiLander(random_state=draw)
    model.network_, model.rules_, model.history_ = join_networks(*networks), plan.rules, history
    model.preparation_ = PerSetPreparation()
    model.summary_ = {"name": "a draw", "trained_on": trained_on, "n_points": n_points}
    return model


def make_pretrained(left_out: str | None, hand: int) -> HiLander:
    """Deal a hand of members of every draw, trained without one domain if asked.

    The thresholds are chosen on held-out identities and on generated sets that none has seen.
    """
    plan = make_plan(hand)
    draws = [HiLander.load(find_draw(left_out, draw)) for draw in range(DRAWS)]
    network = gather_members([one.network_ for one in draws], HANDS[hand])
    rules, table = choose_thresholds(network, read_sources(left_out, make_plan(0)), plan)
    model = HiLander(random_state=hand)
    model.network_, model.rules_, model.preparation_ = network, rules, PerSetPreparation()
    model.history_ = [{"draw": n, **row} for n, one in enumerate(draws) for row in one.history_]
    model.summary_ = {
        "name": "in the box",
        "trained_on": draws[0].summary_["trained_on"],
        "draws": DRAWS,
        "n_points": sum(one.summary_["n_points"] for one in draws),
        "validation": table,
    }
    return model


def join_networks(many: EvidenceNetwork, small_set: EvidenceNetwork) -> EvidenceNetwork:
    """One network that judges sets of few points by the second, all others by the first."""
    return insert_part(
        replace(many.settings, small_set_points=FEW_POINTS), many, "small_set", small_set
    )


def choose_thresholds(
    network: EvidenceNetwork, sources: list[Source], plan: EvidencePlan
) -> tuple[Rules, list[dict[str, Any]]]:
    """Choose the thresholds on the held-out identities of all sources and on generated sets."""
    held_out = [source.held_out for source in sources]
    judge = ThresholdSearch(
        network,
        held_out,
        plan.rules,
        most_points=JUDGED_POINTS,
        extra_sets=make_judged_sets(plan.seed),
        bootstrap=OffsetBootstrap,
    )
    return judge.choose(CAREFUL, PULL)


def judge_anew(folder: Path, left_out: str | None) -> None:
    """Choose the thresholds of a trained model again, as a new training would choose them."""
    model = HiLander.load(folder)
    sources = read_sources(left_out, make_plan(0))
    model.rules_, table = choose_thresholds(model.network_, sources, make_plan(0))
    model.summary_["validation"] = table
    shutil.rmtree(folder)
    model.save(folder)
    print(folder, model.rules_)


def find_draw(left_out: str | None, draw: int) -> Path:
    """Folder of both networks trained on one draw; trained if it is not there yet."""
    folder = KEPT / f"draw-{left_out or 'all'}-{draw}"
    if not folder.is_dir():
        train_draw(left_out, draw).save(folder)
    return folder


def find_box(left_out: str, hand: int = 0) -> Path:
    """Folder of a model trained without one domain; made if it is not there yet."""
    folder = KEPT / f"without-{left_out}-{hand}"
    if not folder.is_dir():
        make_pretrained(left_out, hand).save(folder)
    return folder


def read_test(name: str) -> tuple[Any, Any]:
    """Features and labels of the test file of a shared pair."""
    file = read_embeddings(find_data() / SHARED[name][1])
    return file.features, file.labels


def cluster_by_rival(name: str, features: Any, seed: int) -> Any:
    """Labels of a method that needs no labels, at its defaults; noise points stand alone.

    The rivals get the same prepared embeddings; the two that need a graph get one of 20 neighbours.
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


def stand_alone(labels: Any) -> Any:
    """The same labels with a number of its own for each noise point."""
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
        found = stand_alone(np.asarray(cluster(features)))
        row |= {
            "pairwise_f": pairwise_f(labels, found),
            "bcubed_f": bcubed_f(labels, found),
            "nmi": nmi(labels, found),
            "n_clusters": len(np.unique(found)),
        }
    except Exception as error:  # a rival that fails is a row that says so
        row["error"] = f"{type(error).__name__}: {error}"
    row["cpu_seconds"] = round(time.process_time() - start, 2)
    append_row(ROWS, row)
    print(name, method, seed, {k: row.get(k) for k in ("pairwise_f", "bcubed_f", "nmi", "error")})


def score(boxes: int) -> None:
    """Each domain left out, and the rivals beside."""
    for name in SHARED:
        for hand in range(boxes):
            model = HiLander.load(find_box(DOMAIN_OF[name], hand))
            write_score(name, "in the box", hand, model.predict)
        for rival in LABEL_FREE:
            write_score(name, rival, 0, partial(cluster_by_rival, rival, seed=0))


def render() -> None:
    """Draw the table of the model card anew."""
    text = CARD.read_text(encoding="utf-8")
    CARD.write_text(put_block(text, MARKS, format_rows(read_rows(ROWS))), encoding="utf-8")


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: methods by data sets, Fp / Fb / NMI, the mean over seeds."""
    latest = {(row["dataset"], row["method"], row["seed"]): row for row in rows}
    lines = ["| method | " + " | ".join(SHARED) + " |", "|---" * (len(SHARED) + 1) + "|"]
    for method in ("in the box", *LABEL_FREE):
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
    parser.add_argument("command", choices=["train", "judge", "score", "render"])
    parser.add_argument("--boxes", type=int, default=1, help="of each domain, up to three")
    args = parser.parse_args(arguments)
    if args.command == "train":
        make_pretrained(None, hand=0).save(TARGET)
    elif args.command == "judge":
        judge_anew(TARGET, None)
        for domain in DOMAINS:
            judge_anew(find_box(domain), domain)
    elif args.command == "score":
        score(args.boxes)
    else:
        render()
    return 0


if __name__ == "__main__":
    sys.exit(main())
