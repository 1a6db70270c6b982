"""The training loop: batches of nodes, SGD with cosine annealing, a checkpoint each epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from hilander.arrays.rows import IntArray
from hilander.errors import ModelError, SettingError, check_choice
from hilander.learning.checkpoint import Checkpoint, EpochRecord
from hilander.learning.device import choose_device
from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.examples import TrainingGraph
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.losses import LossSettings, lander_loss
from hilander.linkage.paper.settings import NetworkSettings

Optimizer = Literal["sgd", "adamw"]
OPTIMIZERS: tuple[str, ...] = get_args(Optimizer)
Validate = Callable[[Lander], EpochRecord]


@dataclass(frozen=True)
class LearningSettings:
    """How a network is trained; the defaults are the paper's.

    Parameters
    ----------
    epochs : int
        Passes over every node of every level graph.
    batch_size : int
        Nodes in a batch.
    optimizer : {"sgd", "adamw"}
    learning_rate : float
        Base rate, annealed to zero along a cosine.
    momentum : float
        Of SGD.
    weight_decay : float
    clip_norm : float
        Longest gradient, without which SGD at the paper's rate can run away on small batches; 0
        for no limit, as in the released code.
    loss : LossSettings
    hierarchies : tuple of (k, levels)
        Neighbours and number of levels of each training hierarchy.
    as_released : bool
        Training hierarchies like the released code's: links by similarity, labels not checked.
    validate_every : int
        Epochs between looks at the validation identities, 0 for none.
    """

    epochs: int = 250
    batch_size: int = 4096
    optimizer: Optimizer = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-5
    clip_norm: float = 1.0
    loss: LossSettings = field(default_factory=LossSettings)
    hierarchies: tuple[tuple[int, int], ...] = ((10, 2), (5, 3), (3, 4))
    as_released: bool = False
    validate_every: int = 0

    def __post_init__(self) -> None:
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise SettingError(f"{name}={value!r} must be a whole number >= 1")
            object.__setattr__(self, name, int(value))  # a numpy integer has no place in JSON
        if not self.hierarchies or any(min(pair) < 1 for pair in self.hierarchies):
            raise SettingError(
                f"hierarchies={self.hierarchies!r} must be pairs (k, levels), each >= 1"
            )
        if self.learning_rate <= 0:
            raise SettingError(f"learning_rate={self.learning_rate!r} must be above 0")


def learning_from_dict(values: Mapping[str, Any]) -> LearningSettings:
    """Rebuild settings from what `dataclasses.asdict` gave, after a trip through JSON."""
    loss = LossSettings(**values["loss"])
    pairs = tuple((int(k), int(levels)) for k, levels in values["hierarchies"])
    return LearningSettings(**{**values, "loss": loss, "hierarchies": pairs})


def make_network(settings: NetworkSettings, seed: int) -> Lander:
    """Build a network whose first weights depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Lander(settings)


def train_network(
    network: Lander,
    graphs: Sequence[TrainingGraph],
    settings: LearningSettings,
    *,
    seed: int = 0,
    device: str = "auto",
    checkpoint: Checkpoint | None = None,
    validate: Validate | None = None,
    progress: str | None = None,
) -> list[EpochRecord]:
    """Train a network in place and give its history.

    Every random choice of an epoch is drawn from (seed, epoch), so a run that was killed goes on
    from its checkpoint to the same weights as one that was not.

    Parameters
    ----------
    network : Lander
    graphs : sequence of TrainingGraph
    settings : LearningSettings
    seed : int
    device : str
    checkpoint : Checkpoint, optional
        Where each epoch's end is kept, and where a killed run is taken up.
    validate : callable network -> dict, optional
        Its result joins the record of every `validate_every`-th epoch.
    progress : str, optional
        Name of the progress bar; None for no bar.

    Returns
    -------
    history : list of dict, one for each epoch
        Keys epoch, loss, connectivity_loss, density_loss, learning_rate, and what `validate` gave.
    """
    place = choose_device(device)
    network.to(place)
    graphs = [graph.to(place) for graph in graphs]
    optimizer = make_optimizer(network, settings)
    history = checkpoint.restore(network, optimizer) if checkpoint else []

    epochs = range(len(history), settings.epochs)
    bar = tqdm(
        epochs,
        initial=len(history),
        total=settings.epochs,
        desc=progress,
        unit="epoch",
        disable=None if progress else True,
    )
    for epoch in bar:
        record = train_epoch(network, graphs, optimizer, settings, (seed, epoch))
        if validate and is_due(epoch, settings):
            record |= validate(network)
        history.append({"epoch": epoch, **record})
        if checkpoint:
            checkpoint.keep(network, optimizer, history)
        bar.set_postfix(loss=f"{record['loss']:.4f}")
    return history


def is_due(epoch: int, settings: LearningSettings) -> bool:
    """Whether an epoch ends with a look at the validation identities."""
    return settings.validate_every > 0 and (epoch + 1) % settings.validate_every == 0


def train_epoch(
    network: Lander,
    graphs: Sequence[TrainingGraph],
    optimizer: torch.optim.Optimizer,
    settings: LearningSettings,
    seed: tuple[int, int],
) -> EpochRecord:
    """One pass over every node of every graph; gives the mean losses, weighed by nodes."""
    rng = np.random.default_rng(seed)
    batches = plan_epoch(graphs, settings.batch_size, rng)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    layers = network.settings.layers
    network.train()
    sums, n_seen, rate = np.zeros(2), 0, 0.0
    with torch.random.fork_rng():
        torch.manual_seed(int(rng.integers(2**62)))  # for dropout
        for step, (number, rows) in enumerate(batches):
            rate = anneal(settings, (seed[1] + step / len(batches)) / settings.epochs)
            set_rate(optimizer, rate)
            graph = graphs[number]
            nodes = torch.from_numpy(rows).to(graph.x.device)
            batch = gather_neighbourhood(graph.neighbours, graph.targets.affinity, nodes, layers)
            logits: Tensor = network(graph.x, batch)
            loss = lander_loss(logits, graph.targets_of(nodes), settings.loss, generator)
            optimizer.zero_grad(set_to_none=True)
            loss.total.backward()  # type: ignore[no-untyped-call]
            if settings.clip_norm > 0:
                torch.nn.utils.clip_grad_norm_(network.parameters(), settings.clip_norm)
            optimizer.step()
            sums += len(rows) * np.array([loss.connectivity.item(), loss.density.item()])
            n_seen += len(rows)
    connectivity, density = (float(value) for value in sums / n_seen)
    if not math.isfinite(connectivity + density):
        raise ModelError(
            f"the loss is {connectivity + density} after epoch {seed[1]}, training ran away; "
            f"use a learning_rate below {settings.learning_rate:g}"
        )
    return {
        "loss": connectivity + density,
        "connectivity_loss": connectivity,
        "density_loss": density,
        "learning_rate": rate,
    }


def plan_epoch(
    graphs: Sequence[TrainingGraph], batch_size: int, rng: np.random.Generator
) -> list[tuple[int, IntArray]]:
    """Every node of every graph once, in batches of one graph each, in random order.

    Identities are shuffled and their nodes kept together: neighbours are mostly of one identity,
    so a batch then needs the encodings of few nodes beyond its own.

    Parameters
    ----------
    graphs : sequence of TrainingGraph
    batch_size : int
    rng : numpy Generator

    Returns
    -------
    batches : list of (graph number, ndarray of nodes)
    """
    batches = []
    for number, graph in enumerate(graphs):
        turn = rng.permutation(int(graph.identity.max()) + 1)
        order = np.argsort(turn[graph.identity], kind="stable")
        n_batches = -(-len(graph) // batch_size)
        batches += [(number, part) for part in np.array_split(order, n_batches)]
    return [batches[at] for at in rng.permutation(len(batches))]


def make_optimizer(network: Lander, settings: LearningSettings) -> torch.optim.Optimizer:
    """SGD with momentum, or AdamW."""
    weights, rate, decay = network.parameters(), settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(weights, rate, momentum=settings.momentum, weight_decay=decay)
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(weights, rate, weight_decay=decay)
    raise SettingError(f"optimizer={settings.optimizer!r} is not known; use sgd or adamw")


def anneal(settings: LearningSettings, share_done: float) -> float:
    """Cosine annealing from the base rate to zero."""
    return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * min(share_done, 1.0)))


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate
