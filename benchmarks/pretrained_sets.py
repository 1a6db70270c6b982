"""Training and validation sets of the pretrained model: labelled sets of many kinds and sizes.

There are real sets (the glyphs and the training files of the shared pairs), re-sampled and
bootstrapped to other sizes; face-like sets; and generated sets of many shapes
(`benchmarks.shapes`). They have some thousand points each. The network for small sets is also
trained on sets of a few dozen to a few hundred points, in which most identities are small. A
network trained on large sets alone merges the nearest points of a small set, whatever they are. A
network trained on both is less accurate on large sets. So there are two networks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import load_labelled
from benchmarks.offset_bootstrap import OffsetBootstrap
from benchmarks.shapes import Kind, log_uniform, make_plain, make_shaped
from hilander.embeddings.preparation import learn_preparation
from hilander.embeddings.validation import as_embeddings
from hilander.synthetic.episodes import Episode, Sizes, resample_identities
from hilander.synthetic.face_like import FaceLikeSettings, make_face_like
from hilander.synthetic.training_episodes import REAL_SIZES
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.split import choose_held_out

# Sets of the same kind of object are one domain. They are left out together.
DOMAINS = {"faces": ("faces",), "characters": ("omniglot", "glyphs"), "flowers": ("flowers",)}
DOMAIN_OF = {name: domain for domain, names in DOMAINS.items() for name in names}
K_DRAWN = (15, 15, 15, 15, 20, 30)  # neighbours of a set; one is drawn for each
FACE_LIKE, FACE_LIKE_WEIGHT = 6, 0.5  # sets, and weight of each
SHAPED, VALIDATION_SHAPED, SHAPED_WEIGHT = 120, 24, 1.5
SHAPED_POINTS = 2000, 5000  # points of a generated set, from and to
EVEN: dict[int, Kind] = {0: "even", 3: "even-small"}  # of six sets, which have even sizes
EASY, VALIDATION_EASY = 24, 6
EASY_KINDS: tuple[Kind, ...] = ("even-small", "tiny", "even-small", "log-normal", "even")
EASY_SCATTER = 0.15, 0.8  # range of the factor on the scatter of an easy set
SMALL, VALIDATION_SMALL = 72, 18
SMALL_POINTS = 60, 1500  # points of a small set, from and to
SMALL_KINDS: tuple[Kind, ...] = ("tiny", "singles", "even-small", "tiny", "log", "log-normal")
SMALL_DRAWS = 8  # small sets drawn from each real set
MOST_POINTS = 6000  # points of a re-sampled set, at most
SYNTHETIC_POINTS = 3000  # points of a bootstrapped set
SMALL_SIZES: tuple[Sizes, ...] = ("heavy", "singles", "log", "all")
SYNTHETIC_SIZES: tuple[Sizes, ...] = ("singles", "log", "large", "singles", "log", "even")


@dataclass(frozen=True, eq=False)
class Source:
    """A labelled set, split by identity into a training part and a held-out part."""

    name: str
    known: Episode
    held_out: Episode


def read_sources(left_out: str | None, plan: EvidencePlan) -> list[Source]:
    """The labelled sets without those of one domain; the plan gives the held-out fraction."""
    names = [name for name, domain in DOMAIN_OF.items() if domain != left_out]
    return [split_source(name, *load_labelled(name), plan) for name in names]


def split_source(name: str, features: Any, labels: Any, plan: EvidencePlan) -> Source:
    """Prepare a set as an unlabelled set is prepared, and hold out some of its identities."""
    points = as_embeddings(features)
    prepared = learn_preparation(points).apply(points)
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    apart = choose_held_out(codes, plan)
    return Source(
        name, Episode(prepared[~apart], codes[~apart]), Episode(prepared[apart], codes[apart])
    )


def make_all_episodes(sources: list[Source], seed: int, *, with_small: bool) -> Iterator[Episode]:
    """Make all training sets: re-sampled and bootstrapped real sets, and generated sets.

    Parameters
    ----------
    sources : list of Source
    seed : int
    with_small : bool
        Whether to add sets of few points and of small identities.
    """
    rng = np.random.default_rng([seed, 7])
    for source in sources:
        yield from resample_source(source.known, rng)
        if with_small:
            yield from resample_to_small(source.known, rng)
        yield from bootstrap_source(source.known, rng, with_small=with_small)
    for number in range(FACE_LIKE):
        yield with_drawn_k(make_like_faces(number, rng), rng)
    for shaped in make_many_shapes(SHAPED, np.random.default_rng([seed, 13])):
        yield with_drawn_k(replace(shaped, weight=SHAPED_WEIGHT), rng)
    for easy in make_easy_sets(EASY, np.random.default_rng([seed, 29])):
        yield with_drawn_k(replace(easy, weight=SHAPED_WEIGHT), rng)
    if with_small:
        small = make_small_sets(SMALL, np.random.default_rng([seed, 19]))
        small_easy = make_easy_sets(EASY, np.random.default_rng([seed, 37]), small_set=True)
        for made in (*small, *small_easy):
            yield replace(made, weight=SHAPED_WEIGHT)


def make_validation_sets(seed: int) -> list[Episode]:
    """Generated sets that no model of this seed was trained on."""
    many = make_many_shapes(VALIDATION_SHAPED, np.random.default_rng([seed, 17]))
    small = make_small_sets(VALIDATION_SMALL, np.random.default_rng([seed, 23]))
    easy_rng = np.random.default_rng([seed, 31])
    easy = make_easy_sets(VALIDATION_EASY, easy_rng)
    small_easy = make_easy_sets(VALIDATION_EASY, easy_rng, small_set=True)
    return [*many, *small, *easy, *small_easy]


def resample_source(known: Episode, rng: np.random.Generator) -> Iterator[Episode]:
    """The identities of a real set, with their own sizes and with other sizes."""
    for sizes in ("all", *REAL_SIZES):
        yield with_drawn_k(resample_identities(known, sizes, MOST_POINTS, rng), rng)


def resample_to_small(known: Episode, rng: np.random.Generator) -> Iterator[Episode]:
    """Small sets of points drawn from a real set."""
    for turn in range(SMALL_DRAWS):
        yield resample_identities(
            known, SMALL_SIZES[turn % len(SMALL_SIZES)], draw_n_points(rng), rng
        )


def bootstrap_source(
    known: Episode, rng: np.random.Generator, *, with_small: bool
) -> Iterator[Episode]:
    """New identities like those of a real set: well separated and as hard as real, in turn."""
    bootstrap = OffsetBootstrap(known)
    if not bootstrap.can_draw:
        return
    for turn, sizes in enumerate(SYNTHETIC_SIZES):
        yield with_drawn_k(bootstrap.make(sizes, SYNTHETIC_POINTS, rng, as_hard=turn % 2 == 1), rng)
    for turn, small_set in enumerate((True, True, False, False) if with_small else ()):
        n_points = draw_n_points(rng) if small_set else SYNTHETIC_POINTS
        yield bootstrap.make("small", n_points, rng, as_hard=turn % 2 == 1)


def draw_n_points(rng: np.random.Generator) -> int:
    """Draw the number of points of a small set."""
    return int(log_uniform(*SMALL_POINTS, rng))


def make_small_sets(number: int, rng: np.random.Generator) -> Iterator[Episode]:
    """Generated sets of few points, in which most identities are small."""
    for turn in range(number):
        features, labels = make_shaped(
            rng, draw_n_points(rng), SMALL_KINDS[turn % len(SMALL_KINDS)]
        )
        yield Episode(learn_preparation(features).apply(features), labels)


def make_many_shapes(number: int, rng: np.random.Generator) -> Iterator[Episode]:
    """Sets of many shapes: a third has even sizes, a third is re-sampled to other sizes.

    Leiden finds small identities of even sizes whole. So in such sets two similar clusters are
    mostly two identities, which the network for super-nodes has to learn.
    """
    for turn in range(number):
        kind = EVEN.get(turn % 6)
        features, labels = make_shaped(rng, int(rng.integers(*SHAPED_POINTS)), kind)
        made = Episode(learn_preparation(features).apply(features), labels)
        if turn % 3 == 1:
            sizes = REAL_SIZES[turn // 3 % len(REAL_SIZES)]
            made = resample_identities(made, sizes, MOST_POINTS, rng)
        yield made


def make_easy_sets(
    number: int, rng: np.random.Generator, *, small_set: bool = False
) -> Iterator[Episode]:
    """Sets of well separated identities, most of them smaller than k.

    Where k is larger than an identity, many edges lead to other identities, however far away. A
    network trained on hard sets alone takes such edges as evidence of fragments.
    """
    for turn in range(number):
        kind = EASY_KINDS[turn % len(EASY_KINDS)]
        n_points = draw_n_points(rng) if small_set else int(rng.integers(*SHAPED_POINTS))
        if turn % 2:
            features, labels = make_plain(rng, n_points, kind)
        else:
            easier = log_uniform(*EASY_SCATTER, rng)
            features, labels = make_shaped(rng, n_points, kind, easier=easier)
        yield Episode(learn_preparation(features).apply(features), labels)


def with_drawn_k(episode: Episode, rng: np.random.Generator) -> Episode:
    """The same set with a number of neighbours drawn from `K_DRAWN`."""
    return replace(episode, k=int(rng.choice(K_DRAWN)))


def make_like_faces(number: int, rng: np.random.Generator) -> Episode:
    """A face-like set of a random shape: width, sizes, spread, sub-modes and families."""
    settings = FaceLikeSettings(
        n_points=int(rng.integers(2000, 5000)),
        n_identities=int(np.exp(rng.uniform(np.log(60), np.log(1500)))),
        dim=int(rng.choice([64, 128, 256, 512])),
        sizes="log-normal" if rng.random() < 0.5 else "heavy-tailed",
        spread=float(rng.uniform(0.3, 1.1)),
        n_modes=int(rng.integers(1, 6)),
        mode_spread=float(rng.uniform(0.03, 0.4)),
        family_size=int(rng.integers(1, 9)),
        family_share=float(rng.uniform(0, 0.8)),
        poor_share=float(rng.uniform(0, 0.1)),
    )
    features, labels = make_face_like(settings, seed=int(rng.integers(2**31)), embedder=number)
    prepared = learn_preparation(features).apply(features)
    sizes: Sizes = "all" if number % 2 else "singles"
    made = resample_identities(Episode(prepared, labels), sizes, MOST_POINTS, rng)
    return replace(made, weight=FACE_LIKE_WEIGHT)
