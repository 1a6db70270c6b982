"""Training of the rivals' networks: AdamW with cosine annealing on all examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from hilander.learning.loop import Schedule, Task, cosine, train

_WEIGHT_DECAY = 1e-5  # of AdamW, as in the published training

BatchLoss = Callable[[Tensor], Tensor]  # numbers of examples, shape (n_batch,) -> scalar loss


@dataclass(frozen=True)
class GcnSettings:
    """How the rivals' networks are trained.

    Parameters
    ----------
    epochs, batch_size, hidden : int
    learning_rate : float
        Of AdamW, annealed to zero along a cosine.
    seed : int
    """

    epochs: int = 60
    batch_size: int = 1_024
    hidden: int = 256
    learning_rate: float = 2e-3
    seed: int = 0


def train_on_examples(
    network: nn.Module, batch_loss: BatchLoss, n_examples: int, settings: GcnSettings
) -> None:
    """Minimise a loss over batches of examples, in place.

    Parameters
    ----------
    network : Module
    batch_loss : callable rows -> scalar Tensor
    n_examples : int
        Every epoch uses each example once, in random order.
    settings : GcnSettings
    """
    optimizer = torch.optim.AdamW(
        network.parameters(), settings.learning_rate, weight_decay=_WEIGHT_DECAY
    )
    schedule = Schedule(settings.epochs, settings.learning_rate, cosine)
    train(ExampleTask(network, batch_loss, n_examples, settings), optimizer, schedule)


class ExampleTask(Task[Tensor]):
    """Examples with numbers from 0; a batch holds some numbers."""

    def __init__(
        self, network: nn.Module, batch_loss: BatchLoss, n_examples: int, settings: GcnSettings
    ) -> None:
        super().__init__(network)
        self.batch_loss, self.n_examples = batch_loss, n_examples
        self.n_batches = -(-n_examples // settings.batch_size)
        self.rng = np.random.default_rng([settings.seed, 2])

    def open_epoch(self, epoch: int) -> AbstractContextManager[Sequence[Tensor]]:
        """All examples in random order, cut into batches."""
        order = self.rng.permutation(self.n_examples)
        return nullcontext(
            [torch.from_numpy(rows) for rows in np.array_split(order, self.n_batches)]
        )

    def losses(self, batch: Tensor) -> dict[str, Tensor]:
        """The loss of the batch."""
        return {"loss": self.batch_loss(batch)}


def reflect_axes(x: Tensor, generator: torch.Generator) -> Tensor:
    """Permute and mirror the axes at random, the same for all rows; cosines do not change.

    The published training does not do this. It trains on ten thousand identities. On a few hundred
    the networks would overfit without it.

    Parameters
    ----------
    x : Tensor of shape (..., dim)
    generator : torch.Generator
    """
    dim = x.shape[-1]
    order = torch.randperm(dim, generator=generator)
    sign = torch.randint(0, 2, (dim,), generator=generator) * 2 - 1
    return x[..., order] * sign
