"""Training of LANDER: batches of nodes, SGD with cosine annealing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError, check_choice
from hilander.learning.checkpoint import EpochRecord
from hilander.learning.device import choose_device
from hilander.learning.loop import Run, Schedule, Task, cosine, train
from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.examples import TrainingGraph
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.losses import LossSettings, lander_loss
from hilander.linkage.paper.settings import NetworkSettings

Optimizer = Literal["sgd", "adamw"]
OPTIMIZERS: tuple[str, ...] = get_args(Optimizer)
Validate = Callable[[Lander], EpochRecord]
LanderBatch = tuple[int, IntArray]  # number of a graph, and some of its nodes


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
        Largest norm of the gradient; 0 for no limit, as in the released code. Without a limit,
        SGD at the paper's learning rate can diverge on small batches.
    loss : LossSettings
    hierarchies : tuple of (k, levels)
        Neighbours and number of levels of each training hierarchy.
    as_released : bool
        Build the training hierarchies as the released code does: links by similarity alone,
        without regard to the labels.
    validate_every : int
        Epochs between two scores on the validation identities; 0 for none.
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
            object.__setattr__(self, name, int(value))  # JSON cannot hold a numpy integer
        if not self.hierarchies or any(min(pair) < 1 for pair in self.hierarchies):
            raise SettingError(
                f"hierarchies={self.hierarchies!r} must be pairs (k, levels), each >= 1"
            )
        if self.learning_rate <= 0:
            raise SettingError(f"learning_rate={self.learning_rate!r} must be above 0")


def learning_from_dict(values: Mapping[str, Any]) -> LearningSettings:
    """Rebuild settings from the result of `dataclasses.asdict`, also after it was JSON."""
    loss = LossSettings(**values["loss"])
    pairs = tuple((int(k), int(levels)) for k, levels in values["hierarchies"])
    return LearningSettings(**{**values, "loss": loss, "hierarchies": pairs})


def make_network(settings: NetworkSettings, seed: int) -> Lander:
    """Build a network whose initial weights depend on the seed alone."""
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
    validate: Validate | None = None,
    run: Run | None = None,
) -> list[EpochRecord]:
    """Train a network in place and give its history.

    Every random choice of an epoch is drawn from (seed, epoch). A run that was interrupted and
    continued from its checkpoint therefore ends with the same weights as one that was not.

    Parameters
    ----------
    network : Lander
    graphs : sequence of TrainingGraph
    settings : LearningSettings
    seed : int
    device : str
    validate : callable network -> dict, optional
        Its result is added to the record of every `validate_every`-th epoch.
    run : Run, optional
        Checkpoint, progress bar and halt.

    Returns
    -------
    history : list of dict, one for each epoch
        Keys epoch, loss, connectivity_loss, density_loss, learning_rate, and what `validate` gave.
    """
    place = choose_device(device)
    network.to(place)
    task = LanderTask(network, [graph.to(place) for graph in graphs], settings, seed, validate)
    schedule = Schedule(settings.epochs, settings.learning_rate, cosine, settings.clip_norm)
    return train(task, make_optimizer(network, settings), schedule, run)


class LanderTask(Task[LanderBatch]):
    """Linkage and density of the nodes of level graphs.

    Parameters
    ----------
    network : Lander
    graphs : sequence of TrainingGraph
    settings : LearningSettings
    seed : int
    validate : callable network -> dict, optional
    """

    network: Lander

    def __init__(
        self,
        network: Lander,
        graphs: Sequence[TrainingGraph],
        settings: LearningSettings,
        seed: int,
        validate: Validate | None = None,
    ) -> None:
        super().__init__(network)
        self.graphs, self.settings, self.seed = graphs, settings, seed
        self._validate = validate
        self._balancing = torch.Generator()

    @contextmanager
    def open_epoch(self, epoch: int) -> Iterator[Sequence[LanderBatch]]:
        """Every node of every graph once, in random order; dropout has its own random numbers."""
        rng = np.random.default_rng((self.seed, epoch))
        batches = plan_epoch(self.graphs, self.settings.batch_size, rng)
        self._balancing.manual_seed(int(rng.integers(2**62)))
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)))  # for dropout
            yield batches

    def losses(self, batch: LanderBatch) -> dict[str, Tensor]:
        """Connectivity and density loss (eq. 8 is their sum)."""
        number, rows = batch
        graph = self.graphs[number]
        nodes = torch.from_numpy(rows).to(graph.x.device)
        hops = gather_neighbourhood(
            graph.neighbours, graph.targets.affinity, nodes, self.network.settings.layers
        )
        logits: Tensor = self.network(graph.x, hops)
        loss = lander_loss(logits, graph.targets_of(nodes), self.settings.loss, self._balancing)
        return {"connectivity_loss": loss.connectivity, "density_loss": loss.density}

    def weight(self, batch: LanderBatch) -> float:
        """Number of nodes of the batch."""
        return len(batch[1])

    def validate(self, epoch: int) -> EpochRecord:
        """Validation scores of every `validate_every`-th epoch."""
        every = self.settings.validate_every
        is_due = every > 0 and (epoch + 1) % every == 0
        return self._validate(self.network) if self._validate and is_due else {}


def plan_epoch(
    graphs: Sequence[TrainingGraph], batch_size: int, rng: np.random.Generator
) -> list[LanderBatch]:
    """Every node of every graph once, in batches of one graph each, in random order.

    Identities are shuffled, and the nodes of an identity stay together. Neighbours are mostly of
    one identity, so a batch needs the encodings of few nodes besides its own.

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
