"""Training of one edge classifier: AdamW on edges drawn from many episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from numbers import Integral
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from hilander.arrays.rows import BoolArray, FloatArray
from hilander.errors import SettingError
from hilander.learning.checkpoint import EpochRecord
from hilander.learning.device import choose_device
from hilander.learning.loop import Run, Schedule, Task, train, warm_up_then_cosine
from hilander.linkage.evidence.network import (
    EdgeClassifier,
    EvidenceNetwork,
    EvidenceSettings,
    edge_loss,
)

_STEPS_PER_EPOCH = 50  # steps between two checkpoints; an epoch is not a pass over all edges
_LEAST_SCALE = 1e-3  # added to standard deviations, so that a constant feature is not divided by 0
_INIT_LOCK = Lock()  # torch draws initial weights from one generator for all threads
_FINE_TUNING_EPOCHS = 0.5  # share of the epochs of a training from random weights
_FINE_TUNING_RATE = 0.25  # share of the learning rate of a training from random weights


@dataclass(frozen=True)
class EvidenceLearning:
    """How an evidence network is trained.

    Parameters
    ----------
    epochs : int
        Epochs of 50 steps, for each edge classifier.
    batch_size : int
        Edges in a step, for each member.
    learning_rate : float
        Highest rate. The rate rises for a tenth of the steps, then falls along a cosine.
    weight_decay : float
    noise : float
        Standard deviation of the noise added to standardised edge features. It makes the
        classifier less certain where the data differ from the training set.
    most_points : int
        Points of the largest synthetic episode.
    """

    epochs: int = 24
    batch_size: int = 1024
    learning_rate: float = 6e-3
    weight_decay: float = 1e-3
    noise: float = 0.15
    most_points: int = 8000

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "most_points"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise SettingError(f"{name}={value!r} must be a whole number >= 1")
            object.__setattr__(self, name, int(value))  # JSON cannot hold a numpy integer
        if not 0 < self.learning_rate < math.inf:
            raise SettingError(f"learning_rate={self.learning_rate!r} must be above 0")
        for name in ("weight_decay", "noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise SettingError(f"{name}={getattr(self, name)!r} must be 0 or more")


@dataclass(frozen=True, eq=False)
class Examples:
    """Edges of one episode.

    Parameters
    ----------
    edge_features : ndarray of shape (n_nodes, k, width)
    same : ndarray of shape (n_nodes, k), bool
        Whether both ends are of one identity.
    weight : float
        Factor of the probability that an edge of this episode is drawn.
    """

    edge_features: FloatArray
    same: BoolArray
    weight: float = 1.0


def make_evidence_network(settings: EvidenceSettings, seed: int) -> EvidenceNetwork:
    """Build a network whose initial weights depend on the seed alone."""
    with _INIT_LOCK, torch.random.fork_rng():
        torch.manual_seed(seed)
        return EvidenceNetwork(settings)


def for_fine_tuning(settings: EvidenceLearning) -> EvidenceLearning:
    """Settings to train a trained network further: fewer epochs at a lower rate."""
    epochs = math.ceil(settings.epochs * _FINE_TUNING_EPOCHS)
    return replace(
        settings, epochs=epochs, learning_rate=settings.learning_rate * _FINE_TUNING_RATE
    )


def train_classifier(
    classifier: EdgeClassifier,
    examples: Sequence[Examples],
    settings: EvidenceLearning,
    *,
    seed: int,
    device: str = "auto",
    fit_scaling: bool = True,
    run: Run | None = None,
) -> list[EpochRecord]:
    """Train one edge classifier in place and return its history.

    Every random choice of an epoch is drawn from (seed, epoch). A run that was interrupted and
    continued from its checkpoint therefore ends with the same weights as one that was not.

    Parameters
    ----------
    classifier : EdgeClassifier
    examples : sequence of Examples
    settings : EvidenceLearning
    seed : int
    device : str
    fit_scaling : bool
        Measure mean and standard deviation of the edge features. A classifier that was trained
        before keeps its own, because its weights depend on them.
    run : Run, optional
        Checkpoint, progress bar, and a way to end the training.

    Returns
    -------
    history : list of dict with keys epoch, loss, learning_rate
    """
    task = EdgeTask(classifier.to(choose_device(device)), examples, settings, seed)
    if fit_scaling:
        features = task.edge_features
        classifier.set_scaling(features.mean(dim=0), features.std(dim=0) + _LEAST_SCALE)
    optimizer = torch.optim.AdamW(
        classifier.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )
    schedule = Schedule(settings.epochs, settings.learning_rate, warm_up_then_cosine)
    return train(task, optimizer, schedule, run)


class EdgeTask(Task[Tensor]):
    """Learns whether the two ends of an edge are of one identity; a batch holds edge indices.

    Parameters
    ----------
    network : EdgeClassifier
    examples : sequence of Examples
    settings : EvidenceLearning
    seed : int
    """

    network: EdgeClassifier

    def __init__(
        self,
        network: EdgeClassifier,
        examples: Sequence[Examples],
        settings: EvidenceLearning,
        seed: int,
    ) -> None:
        super().__init__(network)
        self.settings, self.seed, self.sampler = settings, seed, EdgeSampler(examples)
        device, width = network.centre.device, examples[0].edge_features.shape[-1]
        features = np.concatenate([one.edge_features.reshape(-1, width) for one in examples])
        same = np.concatenate([one.same.ravel() for one in examples]).astype(np.float32)
        self.edge_features = torch.from_numpy(features).to(device)  # (n_edges, width)
        self.same = torch.from_numpy(same).to(device)  # (n_edges,)
        self._noise = torch.Generator(device)

    def open_epoch(self, epoch: int) -> AbstractContextManager[Sequence[Tensor]]:
        """Draw other edges for each member, so that not only the initial weights differ.

        A batch has shape (members, batch_size).
        """
        rng = np.random.default_rng((self.seed, epoch))
        self._noise.manual_seed(int(rng.integers(2**31)))
        shape = (self.network.members, self.settings.batch_size)
        batches = [self.sampler.draw(math.prod(shape), rng) for _ in range(_STEPS_PER_EPOCH)]
        return nullcontext([edges.view(shape) for edges in batches])

    def losses(self, batch: Tensor) -> dict[str, Tensor]:
        """Cross-entropy of the members' logits, on edge features with noise."""
        edges = batch.ravel().to(self.edge_features.device)
        features = self.edge_features.index_select(0, edges).view(*batch.shape, -1)
        noise = torch.empty_like(features[0]).normal_(generator=self._noise)
        features += self.settings.noise * self.network.scale * noise
        logits = self.network.member_logits(features)
        return {"loss": edge_loss(logits, self.same[edges].view_as(logits))}


class EdgeSampler:
    """Draws edges of several episodes; edges are indexed through all episodes, in order.

    An episode is drawn with a probability proportional to its weight and the square root of its
    number of nodes, so that large episodes do not dominate. Then one of its edges is drawn.

    Parameters
    ----------
    examples : sequence of Examples
    """

    def __init__(self, examples: Sequence[Examples]) -> None:
        self.size = np.array([one.same.size for one in examples])
        self.start = np.cumsum(self.size) - self.size
        root = np.array([one.weight * math.sqrt(len(one.same)) for one in examples])
        self.probability = root / root.sum()

    def draw(self, count: int, rng: np.random.Generator) -> Tensor:
        """Indices of `count` edges, drawn with replacement, shape (count,), int64."""
        episode = rng.choice(len(self.size), size=count, p=self.probability)
        edge = (rng.random(count) * self.size[episode]).astype(np.int64)
        return torch.from_numpy(self.start[episode] + edge)
