"""Training one look of an evidence network: AdamW on edges drawn from many episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from hilander.arrays.rows import BoolArray, FloatArray
from hilander.errors import SettingError
from hilander.learning.checkpoint import Checkpoint, EpochRecord
from hilander.learning.device import choose_device
from hilander.linkage.evidence.network import (
    EdgeClassifier,
    EvidenceNetwork,
    EvidenceSettings,
    edge_loss,
)

Watch = Callable[[Iterable[Any]], Iterator[Any]]  # gives what it is given, or raises
_STEPS_PER_EPOCH = 50
_WARM_UP = 0.1  # share of the steps in which the rate rises
_LEAST_SPREAD = 1e-3
_ONE_AT_A_TIME = Lock()  # torch draws first weights from one generator for all threads
_FINE_TUNING_EPOCHS, _FINE_TUNING_RATE = 0.5, 0.25  # shares of those from nothing


@dataclass(frozen=True)
class EvidenceLearning:
    """How an evidence network is trained.

    Parameters
    ----------
    epochs : int
        Of 50 steps each, for each look.
    batch_size : int
        Edges in a step, for each member.
    learning_rate : float
        Highest rate; it rises for a tenth of the steps and falls along a cosine.
    weight_decay : float
    noise : float
        Standard deviation of the noise on standardised evidence. A network that has seen every
        edge a little otherwise is careful where the data are unlike the training set.
    most_points : int
        Points of the largest made-up episode.
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
            object.__setattr__(self, name, int(value))  # a numpy integer has no place in JSON
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
        Whether both ends are one identity.
    weight : float
        How much the episode counts.
    """

    edge_features: FloatArray
    same: BoolArray
    weight: float = 1.0


def make_evidence_network(settings: EvidenceSettings, seed: int) -> EvidenceNetwork:
    """Build a network whose first weights depend on the seed alone."""
    with _ONE_AT_A_TIME, torch.random.fork_rng():
        torch.manual_seed(seed)
        return EvidenceNetwork(settings)


def for_fine_tuning(settings: EvidenceLearning) -> EvidenceLearning:
    """Settings to train a trained network further: fewer steps, at a lower rate."""
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
    checkpoint: Checkpoint | None = None,
    progress: str | None = None,
    fit_scaling: bool = True,
    watch: Watch = iter,
) -> list[EpochRecord]:
    """Train one look in place and give its history.

    An episode is drawn by the root of its number of nodes, then an edge of it: large ones do not
    drown the small. Every draw of an epoch comes from (seed, epoch), so a killed run goes on from
    its checkpoint to the same weights.

    Parameters
    ----------
    look : Look
    examples : sequence of Examples
    settings : EvidenceLearning
    seed : int
    device : str
    checkpoint : Checkpoint, optional
    progress : str, optional
        Name of the progress bar; None for no bar.
    fit_scaling : bool
        Measure mean and spread of the evidence. A look that was trained before keeps its own, for
        its weights are made for them.
    watch : callable (epochs) -> iterator
        Is asked for each epoch, and may raise to end the training.

    Returns
    -------
    history : list of dict with keys epoch, loss, learning_rate
    """
    place = choose_device(device)
    evidence, same = _stack(examples, place)
    classifier.to(place).train()
    if fit_scaling:
        classifier.adapt(evidence.mean(dim=0), evidence.std(dim=0) + _LEAST_SPREAD)
    optimizer = torch.optim.AdamW(
        classifier.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )
    history = checkpoint.restore(classifier, optimizer) if checkpoint else []
    epochs = tqdm(
        range(len(history), settings.epochs),
        initial=len(history),
        total=settings.epochs,
        desc=progress,
        unit="epoch",
        disable=None if progress else True,
    )
    for epoch in watch(epochs):
        record = {"epoch": epoch}
        record |= _train_epoch(
            classifier, optimizer, (evidence, same), _Draw(examples), settings, (seed, epoch)
        )
        history.append(record)
        if checkpoint:
            checkpoint.keep(classifier, optimizer, history)
    classifier.eval()
    return history


class _Draw:
    """Draws edges of many episodes laid end to end."""

    def __init__(self, examples: Sequence[Examples]) -> None:
        self.size = np.array([one.same.size for one in examples])
        self.start = np.cumsum(self.size) - self.size
        root = np.array([one.weight * math.sqrt(len(one.same)) for one in examples])
        self.share = root / root.sum()

    def __call__(self, count: int, rng: np.random.Generator) -> Tensor:
        episode = rng.choice(len(self.size), size=count, p=self.share)
        edge = (rng.random(count) * self.size[episode]).astype(np.int64)
        return torch.from_numpy(self.start[episode] + edge)


def _stack(examples: Sequence[Examples], place: torch.device) -> tuple[Tensor, Tensor]:
    width = examples[0].edge_features.shape[-1]
    evidence = np.concatenate([one.edge_features.reshape(-1, width) for one in examples])
    same = np.concatenate([one.same.ravel() for one in examples]).astype(np.float32)
    return torch.from_numpy(evidence).to(place), torch.from_numpy(same).to(place)


def _train_epoch(
    classifier: EdgeClassifier,
    optimizer: torch.optim.Optimizer,
    edges: tuple[Tensor, Tensor],
    draw: _Draw,
    settings: EvidenceLearning,
    seed: tuple[int, int],
) -> EpochRecord:
    rng = np.random.default_rng(seed)
    evidence, same = edges
    chance = torch.Generator(evidence.device).manual_seed(int(rng.integers(2**31)))
    total, rate = 0.0, 0.0
    for step in range(_STEPS_PER_EPOCH):
        done = (seed[1] + step / _STEPS_PER_EPOCH) / settings.epochs
        rate = settings.learning_rate * rise_and_fall(done)
        for group in optimizer.param_groups:
            group["lr"] = rate
        # Other edges for each member, so that their mean is of more than first weights.
        batch = draw(classifier.members * settings.batch_size, rng).to(evidence.device)
        seen = evidence.index_select(0, batch)
        seen = seen.view(classifier.members, settings.batch_size, -1)
        seen += (
            settings.noise * classifier.scale * torch.empty_like(seen[0]).normal_(generator=chance)
        )
        logits = classifier.member_logits(seen)
        loss = edge_loss(logits, same[batch].view_as(logits))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.item()
    return {"loss": total / _STEPS_PER_EPOCH, "learning_rate": rate}


def rise_and_fall(share_done: float) -> float:
    """A rate that rises along a line for a tenth of the time and falls along a cosine."""
    if share_done < _WARM_UP:
        return 0.04 + 0.96 * share_done / _WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (share_done - _WARM_UP) / (1 - _WARM_UP)))
