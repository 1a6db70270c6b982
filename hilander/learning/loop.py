"""The training loop of every network: epochs, learning rate, history, checkpoint, progress, halt.

A `Task` defines what is learned: it draws the batches of an epoch and gives the losses of a batch.
`train` does the rest. An epoch reads *draw, step, record*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from tqdm import tqdm

from hilander.errors import ModelError
from hilander.learning.checkpoint import Checkpoint, EpochRecord

Batch = TypeVar("Batch")
Watch = Callable[[Iterable[Any]], Iterator[Any]]  # yields the items it is given, or raises
Shape = Callable[[float], float]  # share of the training that is done -> share of the highest rate

_WARM_UP = 0.1  # share of the steps in which the rate of `warm_up_then_cosine` rises
_FIRST_RATE = 0.04  # share of the highest rate at the first step; at 0 it would do nothing


class Task(Generic[Batch]):
    """What a network learns: its batches and their losses.

    Parameters
    ----------
    network : Module
        On the device where it is trained.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def open_epoch(self, epoch: int) -> AbstractContextManager[Sequence[Batch]]:
        """Draw the batches of an epoch; the context stays open while they are used.

        A task with checkpoints draws every random choice of an epoch from (seed, epoch). A run
        that was interrupted then ends with the same weights as one that was not.
        """
        raise NotImplementedError

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Losses of a batch by name, each a scalar; their sum is minimised."""
        raise NotImplementedError

    def weight(self, batch: Batch) -> float:
        """Weight of a batch in the mean losses of its epoch."""
        return 1.0

    def validate(self, epoch: int) -> EpochRecord:
        """Values to add to the record of an epoch, such as validation scores."""
        return {}


@dataclass(frozen=True)
class Schedule:
    """How long a network is trained, and at which learning rates.

    Parameters
    ----------
    epochs : int
    learning_rate : float
        Highest rate.
    shape : callable
        From the share of the training that is done, in [0, 1), to a share of the highest rate.
    clip_norm : float
        Largest norm of the gradient; 0 for no limit.
    """

    epochs: int
    learning_rate: float
    shape: Shape
    clip_norm: float = 0.0

    def rate(self, share_done: float) -> float:
        """Learning rate after a share of the training."""
        return self.learning_rate * self.shape(share_done)


@dataclass(frozen=True)
class Run:
    """Checkpoint, progress bar and halt of a training run.

    Parameters
    ----------
    checkpoint : Checkpoint, optional
        File that is written after each epoch. A run continues from it.
    progress : str, optional
        Title of the progress bar; None for no bar.
    watch : callable (epochs) -> iterator
        Yields the epochs one by one. It may raise to end the training.
    """

    checkpoint: Checkpoint | None = None
    progress: str | None = None
    watch: Watch = iter


def train(
    task: Task[Any],
    optimizer: torch.optim.Optimizer,
    schedule: Schedule,
    run: Run | None = None,
) -> list[EpochRecord]:
    """Train the network of a task in place.

    Parameters
    ----------
    task : Task
    optimizer : Optimizer
        Of the network's parameters. Its learning rate is set at each step.
    schedule : Schedule
    run : Run, optional
        Checkpoint, progress bar and halt; none by default.

    Returns
    -------
    history : list of dict, one for each epoch
        Keys epoch, loss, the named losses if there are several, learning_rate (of the last step),
        and what `task.validate` gave.
    """
    run = run or Run()
    network, checkpoint = task.network, run.checkpoint
    history = checkpoint.restore(network, optimizer) if checkpoint else []
    bar = tqdm(
        range(len(history), schedule.epochs),
        initial=len(history),
        total=schedule.epochs,
        desc=run.progress,
        unit="epoch",
        disable=None if run.progress else True,
    )
    for epoch in run.watch(bar):
        record = train_epoch(task, optimizer, schedule, epoch)
        history.append({"epoch": epoch, **record, **task.validate(epoch)})
        if checkpoint:
            checkpoint.keep(network, optimizer, history)
        bar.set_postfix(loss=f"{record['loss']:.4f}")
    network.eval()
    return history


def train_epoch(
    task: Task[Any], optimizer: torch.optim.Optimizer, schedule: Schedule, epoch: int
) -> EpochRecord:
    """Take the steps of one epoch and give its mean losses and last learning rate."""
    task.network.train()
    sums: dict[str, float] = {}
    total_weight, rate = 0.0, 0.0
    with task.open_epoch(epoch) as batches:
        for step, batch in enumerate(batches):
            rate = schedule.rate((epoch + step / len(batches)) / schedule.epochs)
            losses = task.losses(batch)
            _take_step(optimizer, reduce(add, losses.values()), rate, schedule.clip_norm)
            weight = task.weight(batch)
            total_weight += weight
            for name, loss in losses.items():
                sums[name] = sums.get(name, 0.0) + weight * loss.item()
    means = {name: value / total_weight for name, value in sums.items()}
    mean_loss = sum(means.values())
    if not math.isfinite(mean_loss):
        raise ModelError(
            f"the loss is {mean_loss} after epoch {epoch}: training diverged; "
            f"use a learning_rate below {schedule.learning_rate:g}"
        )
    return {"loss": mean_loss, **(means if len(means) > 1 else {}), "learning_rate": rate}


def _take_step(
    optimizer: torch.optim.Optimizer, loss: Tensor, rate: float, clip_norm: float
) -> None:
    """Set the learning rate and move the weights down the gradient of the loss."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if clip_norm > 0:
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        torch.nn.utils.clip_grad_norm_(weights, clip_norm)
    optimizer.step()


def cosine(share_done: float) -> float:
    """Fall from 1 to 0 along half a cosine (cosine annealing)."""
    return 0.5 * (1 + math.cos(math.pi * min(share_done, 1.0)))


def linear(share_done: float) -> float:
    """Fall from 1 to 0 along a line."""
    return 1 - share_done


def warm_up_then_cosine(share_done: float) -> float:
    """Rise to 1 along a line for a tenth of the training, then fall to 0 along half a cosine."""
    if share_done < _WARM_UP:
        return _FIRST_RATE + (1 - _FIRST_RATE) * share_done / _WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (share_done - _WARM_UP) / (1 - _WARM_UP)))
