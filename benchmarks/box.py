"""The model in the box: train it, and score it on domains that it has not seen.

    python -m benchmarks.box train            # writes hilander/model/box/
    python -m benchmarks.box score            # rows: each domain left out, beside label-free rivals
    python -m benchmarks.box render           # the tables of docs/model-card.md

It learns from generated sets of many shapes, from the glyphs, and from the training files of the
shared pairs. A score on a pair is that of a model trained without the pair's whole domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import load_labelled
from benchmarks.rows import RESULTS, ROOT
from hilander import HiLander
from hilander.data import as_embeddings, learn_preparation
from hilander.data.episodes import Episode, IdentityBootstrap, resample_identities
from hilander.data.face_like import FaceLikeSettings, make_face_like
from hilander.evidence_training import EvidencePlan, Judge, train_on_episodes
from hilander.model.evidence_learning import EvidenceLearning
from hilander.plans import DEFAULT_P_TAU
from hilander.training import Stages, choose_held_out
from hilander.tree import Rules

ROWS = RESULTS / "box.jsonl"
TARGET = ROOT / "hilander" / "model" / "box"
# Sets that show the same kind of thing are one domain, left out together.
DOMAINS = {"faces": ("faces",), "characters": ("omniglot", "glyphs"), "flowers": ("flowers",)}
DOMAIN_OF = {name: domain for domain, names in DOMAINS.items() for name in names}
K = 20
K_SEEN = (15, 20, 30)
GENERATED = 12
GENERATED_WEIGHT = 0.5
MOST_POINTS = 6000
MADE_UP_POINTS = 3000
EPOCHS = 40


@dataclass(frozen=True, eq=False)
class Source:
    """A labelled set to learn from, cut in two by identity."""

    name: str
    known: Episode
    held_out: Episode


def read_sources(left_out: str | None) -> list[Source]:
    """The labelled sets, but those of one domain."""
    names = [name for name, domain in DOMAIN_OF.items() if domain != left_out]
    return [cut_source(name, *load_labelled(name)) for name in names]


def cut_source(name: str, features: Any, labels: Any) -> Source:
    """Prepare a set as an unlabelled one would be, and hold a fifth of its identities out."""
    points = as_embeddings(features)
    prepared = learn_preparation(points).apply(points)
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    apart = choose_held_out(codes, make_plan(0))
    return Source(
        name, Episode(prepared[~apart], codes[~apart]), Episode(prepared[apart], codes[apart])
    )


def make_plan(seed: int) -> EvidencePlan:
    """What the model is and how it learns."""
    rules = Rules(
        k=K, p_tau=DEFAULT_P_TAU, p_tau_merge=DEFAULT_P_TAU, search_average=True,
        decoder="contract", keep_links=True,
    )  # fmt: skip
    return EvidencePlan(learning=EvidenceLearning(epochs=EPOCHS), rules=rules, seed=seed)


def make_all_episodes(sources: list[Source], seed: int) -> Iterator[Episode]:
    """Every set re-sampled and bootstrapped to other sizes, and generated sets of many shapes."""
    rng = np.random.default_rng([seed, 7])
    for source in sources:
        for sizes in ("all", "singles", "log", "heavy"):
            yield see_some(resample_identities(source.known, sizes, MOST_POINTS, rng), rng)  # type: ignore[arg-type]
        bootstrap = IdentityBootstrap(source.known)
        if bootstrap.is_able:
            for sizes in ("singles", "log", "large"):
                yield see_some(bootstrap.make(sizes, MADE_UP_POINTS, rng), rng)  # type: ignore[arg-type]
    for number in range(GENERATED):
        yield see_some(generate(number, rng), rng)


def see_some(episode: Episode, rng: np.random.Generator) -> Episode:
    """The same episode with a number of neighbours of its own."""
    return replace(episode, k=int(rng.choice(K_SEEN)))


def generate(number: int, rng: np.random.Generator) -> Episode:
    """A face-like set of a random shape: width, sizes, spread, sub-modes and families."""
    settings = FaceLikeSettings(
        n_points=int(rng.integers(2000, 5000)),
        n_identities=int(np.exp(rng.uniform(np.log(60), np.log(1500)))),
        dim=int(rng.choice([64, 128, 256, 512])),
        sizes="log-normal" if rng.random() < 0.5 else "heavy-tailed",
        spread=float(rng.uniform(0.3, 1.1)),
        n_looks=int(rng.integers(1, 6)),
        look_spread=float(rng.uniform(0.03, 0.4)),
        family_size=int(rng.integers(1, 9)),
        family_share=float(rng.uniform(0, 0.8)),
        poor_share=float(rng.uniform(0, 0.1)),
    )
    features, labels = make_face_like(settings, seed=int(rng.integers(2**31)), embedder=number)
    prepared = learn_preparation(features).apply(features)
    sizes = "all" if number % 2 else "singles"
    made = resample_identities(Episode(prepared, labels), sizes, MOST_POINTS, rng)  # type: ignore[arg-type]
    return replace(made, weight=GENERATED_WEIGHT)


def train_box(left_out: str | None, seed: int, verbose: bool = True) -> HiLander:
    """Train the model, without one domain if asked.

    The thresholds are chosen on the held-out identities of all sources together.
    """
    sources = read_sources(left_out)
    plan = make_plan(seed)
    episodes = list(make_all_episodes(sources, seed))
    network, history = train_on_episodes(episodes, plan, Stages(None, "", verbose), "box")
    judge = Judge.of_many(network, [source.held_out for source in sources], plan)
    rules, table = judge.choose()
    model = HiLander(k=K, random_state=seed)
    model.network_, model.rules_, model.history_ = network, rules, history
    model.preparation_ = None
    model.summary_ = {
        "trained_on": [source.name for source in sources] + [f"{GENERATED} generated sets"],
        "n_points": sum(len(one.labels) for one in episodes),
        "validation": table,
    }
    return model
