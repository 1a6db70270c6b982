"""Pseudo-labels: train an embedder further, with clusters as labels.

An embedder is trained on some labelled classes. It embeds images of other labelled classes, on
which each method is tuned and trained. It also embeds unlabelled images of further classes, which
each method clusters. Then the embedder is trained further, with all labels and with the clusters
as labels. It is scored on images of classes that no training has used, by FNMR at FMR and FNIR at
FPIR. Two more rows give the bounds: training without the unlabelled images, and with their true
labels.

No method is trained on the classes that the embedder was trained on. The embedder separates those
far better than new classes: on glyphs, 96 % of the neighbours of a point are of its class, against
71 % for new classes.

    python -m benchmarks.pseudo_labels run [--images glyphs] [--methods NAMES] [--seeds 0 1 2]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from benchmarks.rows import RESULTS, append_row, describe_circumstances
from benchmarks.verification import score_verification
from hilander.comparison.methods import choose_methods
from hilander.comparison.protocol import make_graph, tune_method
from hilander.comparison.rival import Problem, Rival, noise_to_singletons
from hilander.embeddings.preparation import learn_preparation
from hilander.errors import SettingError
from hilander.metrics.report import score_clustering

ROWS = RESULTS / "pseudo_labels.jsonl"
FMR, FPIR = (1e-3, 1e-4), (1e-1, 1e-2)
NO_CLUSTERS, TRUTH = "labelled classes only", "true labels"
MakeNetwork = Callable[[int], nn.Module]
Images = NDArray[np.uint8]
Labels = NDArray[Any]


@dataclass(frozen=True)
class Training:
    """How an embedder is trained.

    Parameters
    ----------
    epochs, batch_size : int
    learning_rate : float
        Of AdamW, annealed along a cosine.
    scale, margin : float
        Of the cosine softmax: logits are ``scale (cos - margin [true class])``.
    fewest : int
        Pseudo-classes of fewer images are left out.
    seed : int
    """

    epochs: int = 15
    batch_size: int = 128
    learning_rate: float = 2e-3
    scale: float = 16.0
    margin: float = 0.2
    fewest: int = 2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Split:
    """Images in four parts of disjoint classes.

    Parameters
    ----------
    shown : images and labels
        The first embedder is trained on these.
    labelled : images and labels
        The methods are tuned and trained on these.
    unlabelled : images and labels
        The methods cluster these; the labels are for the row of the true labels.
    unseen : images and labels
        The embedders are scored on these.
    """

    shown: tuple[Images, Labels]
    labelled: tuple[Images, Labels]
    unlabelled: tuple[Images, Labels]
    unseen: tuple[Images, Labels]


def split_classes(
    images: Images,
    labels: Labels,
    seed: int = 0,
    shares: tuple[float, float, float] = (0.3, 0.15, 0.3),
) -> Split:
    """Split the classes into four parts: shown, labelled, unlabelled, unseen.

    Parameters
    ----------
    images : ndarray of shape (n, height, width) or (n, channels, height, width), uint8
    labels : ndarray of shape (n,)
    seed : int
    shares : three of float
        Shares of the shown, the labelled and the unlabelled classes; the rest is unseen.
    """
    codes = np.unique(labels, return_inverse=True)[1]
    n_classes = int(codes.max()) + 1
    ends = np.round(np.cumsum(shares) * n_classes).astype(int)
    if np.diff(ends, prepend=0, append=n_classes).min() < 2:
        raise SettingError(f"got {n_classes} classes, too few for four parts; give more")
    part = np.searchsorted(ends, np.random.default_rng(seed).permutation(n_classes), "right")
    return Split(*((images[part[codes] == p], codes[part[codes] == p]) for p in range(4)))


class SmallEmbedder(nn.Module):
    """Three convolutions and a linear map, for grey images of about 28 by 28."""

    def __init__(self, dim: int = 64, channels: int = 1) -> None:
        super().__init__()
        widths = (channels, 16, 32, 64)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [
                nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()
            ]  # fmt: skip
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.project = nn.Linear(64 * 9, dim)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Embeddings of unit length, shape (n, dim), of images (n, channels, height, width)."""
        return F.normalize(self.project(self.layers(pictures)), dim=1)


def make_small_embedder(seed: int) -> nn.Module:
    """A small network. Its initial weights depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SmallEmbedder()


def as_pictures(images: Images) -> torch.Tensor:
    """Images as float tensors of shape (n, channels, height, width), in [0, 1]."""
    pictures = torch.from_numpy(np.ascontiguousarray(images)).float() / 255
    return pictures.unsqueeze(1) if pictures.ndim == 3 else pictures


def train_embedder(network: nn.Module, images: Images, labels: Labels, settings: Training) -> None:
    """Train an embedder in place to separate classes, by a cosine softmax with a margin.

    Parameters
    ----------
    network : Module that maps (n, channels, height, width) to unit rows (n, dim)
    images : ndarray of shape (n, ...), uint8
    labels : ndarray of shape (n,)
    settings : Training
    """
    codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    kept = sizes[codes] >= settings.fewest
    images, codes = images[kept], np.unique(codes[kept], return_inverse=True)[1]
    if not len(codes) or codes.max() < 1:
        return  # fewer than two classes: nothing to separate
    pictures, classes = as_pictures(images), torch.from_numpy(codes)
    dim = network(pictures[:2]).shape[1]
    generator = torch.Generator().manual_seed(settings.seed)
    centres = nn.Parameter(torch.randn(int(codes.max()) + 1, dim, generator=generator))
    optimizer = torch.optim.AdamW([*network.parameters(), centres], settings.learning_rate)
    n_batches = max(1, len(codes) // settings.batch_size)
    anneal = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs * n_batches)
    network.train()
    for _ in range(settings.epochs):
        for rows in torch.randperm(len(codes), generator=generator).tensor_split(n_batches):
            cosine = network(pictures[rows]) @ F.normalize(centres, dim=1).T
            margin = F.one_hot(classes[rows], len(centres)) * settings.margin
            loss = F.cross_entropy(settings.scale * (cosine - margin), classes[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            anneal.step()


def embed(network: nn.Module, images: Images) -> NDArray[np.float32]:
    """Embeddings of unit length, shape (n, dim), float32."""
    network.eval()
    with torch.inference_mode():
        parts = [network(part) for part in as_pictures(images).split(1024)]
    rows = torch.cat(parts).numpy().astype(np.float32)
    return np.ascontiguousarray(
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    )


def cluster_with(method: Rival, labelled: tuple[Any, Any], unlabelled: Any, seed: int) -> Any:
    """Tune a method on labelled embeddings and cluster unlabelled ones."""
    features, labels = labelled
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    preparation = learn_preparation(features, "auto", labels=codes)
    points, others = preparation.apply(features), preparation.apply(unlabelled)
    train = Problem(points, make_graph(points), seed)
    tuned = tune_method(method, train, codes)
    fitted = method.fit(train, codes, tuned.params) if method.needs_labels else None
    problem = Problem(others, make_graph(others), seed)
    state = method.start(problem, fitted, tuned.params)
    return noise_to_singletons(method.cluster(problem, state, tuned.params))


def run_seed(
    split: Split, methods: Sequence[Rival], seed: int, make_network: MakeNetwork
) -> Iterator[dict[str, Any]]:
    """Rows of one seed: without clusters, with true labels, with the clusters of each method."""
    first = Training(seed=seed)
    base = make_network(seed)
    train_embedder(base, *split.shown, first)
    labelled = embed(base, split.labelled[0]), split.labelled[1]
    unlabelled = embed(base, split.unlabelled[0])
    without = _learn_on(split, None, base, make_network, first)
    yield {"labels": NO_CLUSTERS, "seed": seed, **without}
    truth = _learn_on(split, split.unlabelled[1], base, make_network, first)
    yield {"labels": TRUTH, "seed": seed, "bcubed_f": 1.0, **truth}
    for method in methods:
        row: dict[str, Any] = {"labels": method.name, "seed": seed}
        try:
            method.check_installed()
            start = perf_counter()
            found = cluster_with(method, labelled, unlabelled, seed)
            row["cluster_seconds"] = perf_counter() - start
            row["bcubed_f"] = score_clustering(split.unlabelled[1], found).bcubed.f
            row |= _learn_on(split, found, base, make_network, first)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
        yield row


def _learn_on(
    split: Split,
    labels: Labels | None,
    base: nn.Module,
    make_network: MakeNetwork,
    settings: Training,
) -> dict[str, float]:
    """Train the base further with labelled and pseudo-labelled images, and score it."""
    network = make_network(settings.seed)
    network.load_state_dict(base.state_dict())
    images = np.concatenate([split.shown[0], split.labelled[0]])
    classes = np.concatenate([split.shown[1], split.labelled[1]])
    if labels is not None:
        images = np.concatenate([images, split.unlabelled[0]])
        classes = np.concatenate([classes, labels + classes.max() + 1])
    train_embedder(network, images, classes, settings)
    return _verify(network, split)


def _verify(network: nn.Module, split: Split) -> dict[str, float]:
    features = embed(network, split.unseen[0])
    scores = score_verification(features, split.unseen[1], fmr=FMR, fpir=FPIR)
    found = {f"fnmr@{rate:g}": value for rate, value in scores.fnmr.items()}
    return found | {f"fnir@{rate:g}": value for rate, value in scores.fnir.items()}


TEXT = (
    "A small network that embeds images of glyphs is trained on labelled classes. Each method is "
    "tuned and trained on other labelled classes and clusters unlabelled images. Then the network "
    "is trained further with the clusters as labels. It is scored on classes that no training has "
    "used. FNMR is the share of pairs of one class that are rejected at the threshold that accepts "
    "the given share (FMR) of pairs of two classes. FNIR is the share of images of enrolled "
    "classes that are not identified at the threshold that accepts the given share (FPIR) of "
    "images of other classes. Lower is better. Values are means over seeds. Rows: "
    "`benchmarks/results/pseudo_labels.jsonl`, by `python -m benchmarks.pseudo_labels run`."
)


def format_pseudo_labels(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of the means over seeds; lower errors are better."""
    if not rows:
        return "Not run yet: `python -m benchmarks.pseudo_labels run`."
    names = [f"fnmr@{rate:g}" for rate in FMR] + [f"fnir@{rate:g}" for rate in FPIR]
    titles = [f"FNMR at FMR {rate:g}" for rate in FMR] + [f"FNIR at FPIR {rate:g}" for rate in FPIR]
    latest = {(row["labels"], row["seed"]): row for row in rows}
    by_labels: dict[str, list[dict[str, Any]]] = {}
    for row in latest.values():
        by_labels.setdefault(row["labels"], []).append(row)
    lines = [
        "| trained on with | Fb of the clusters | " + " | ".join(titles) + " |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for labels, some in by_labels.items():
        good = [row for row in some if not row.get("error")]
        if not good:
            lines.append(f"| {labels} | *{some[0]['error']}* |" + " |" * len(names))
            continue
        purity = [row["bcubed_f"] for row in good if row.get("bcubed_f") is not None]
        cells = [f"{statistics.fmean(purity):.3f}" if purity else "–"]
        cells += [f"{statistics.fmean(row[name] for row in good):.3f}" for name in names]
        lines.append(f"| {labels} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    from benchmarks.datasets import load_images

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run"])
    parser.add_argument("--images", default="glyphs", help="glyphs or omniglot")
    parser.add_argument("--methods", help="names, separated by commas (default: all)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args(arguments)
    images, labels = load_images(args.images)
    methods = choose_methods(args.methods.split(",") if args.methods else None)
    circumstances = describe_circumstances()
    for seed in args.seeds:
        split = split_classes(images, labels, seed)
        for row in run_seed(split, methods, seed, make_small_embedder):
            append_row(ROWS, {"images": args.images, **row, **circumstances})
            print({key: row[key] for key in row if key != "seed"}, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
