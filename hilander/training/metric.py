"""A learned metric: a linear map after which points of one identity are closer to each other.

The embedder was trained on other identities or for another purpose. Labels show which of its
directions separate identities. The map starts as the identity matrix and a penalty keeps it near
that matrix. The penalty is stronger with fewer training identities, to prevent overfitting.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
from hilander.learning.device import one_thread
from hilander.learning.loop import Schedule, Task, linear, train

N_AXES = 256  # principal axes that the map may change; bounds the time of a step
_PCA_ROWS = 20_000  # rows that the principal axes are computed from; bounds the time
_STEPS = 200  # steps of Adam; a hundred more gain 0.001 of right neighbours on unseen characters
_RATE = 3e-3  # learning rate of the first step
_IDENTITIES = 128  # identities in a step; fewer gain less on unseen characters
_MEMBERS = 5  # points of each identity in a step
_WINDOW = 64  # consecutive members of an identity that those of one step are drawn from
_TEMPERATURE = 0.1  # divisor of cosines in the softmax; lower ones gain less
_MARGIN = 0.1  # cosine by which points of one identity have to be closer than others
# Weight of the penalty, divided by the number of training identities. Unseen characters gain most
# near this value, whether the map is learned from 20, 50, 100, 200 or 270 identities.
_PENALTY = 4.0

Draw = tuple[Tensor, Tensor]  # rows of points and their identities, each of shape (n_drawn,)


def learn_metric(
    features: FloatArray, labels: IntArray, *, seed: int = 0, basis: FloatArray | None = None
) -> FloatArray:
    """Learn a linear map that separates identities.

    Each step draws points of some identities and minimises the supervised contrastive loss.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,)
    seed : int
    basis : ndarray of shape (dim, n_axes), optional
        Directions that may be changed, as `find_principal_axes` gives them. By default those of
        the features.

    Returns
    -------
    transform : ndarray of shape (dim, dim), float32
        To be multiplied from the right. The identity matrix if no identity has two points.
    """
    dim = features.shape[1]
    codes = np.unique(labels, return_inverse=True)[1]
    basis = find_principal_axes(features) if basis is None else basis
    sampler = PointSampler(codes, np.random.default_rng([seed, 5]))
    if sampler.size.max(initial=0) < 2:
        return np.eye(dim, dtype=np.float32)
    task = MetricTask(torch.from_numpy(np.ascontiguousarray(features @ basis)), sampler)
    optimizer = torch.optim.Adam(task.network.parameters(), _RATE)
    with one_thread():  # a step is too small for two threads or a GPU
        train(task, optimizer, Schedule(1, _RATE, linear))
    change = task.network.change.detach().numpy()
    transform: FloatArray = np.eye(dim, dtype=np.float32) + basis @ change @ basis.T
    return transform


def find_principal_axes(features: FloatArray) -> FloatArray:
    """Directions of the largest variance, as columns, shape (dim, n_axes), float32.

    All axes of the space, without a rotation, if it has at most `N_AXES` dimensions.
    """
    dim = features.shape[1]
    if dim <= N_AXES:
        return np.eye(dim, dtype=np.float32)
    step = -(-len(features) // _PCA_ROWS)
    some = features[::step].astype(np.float64)
    some -= some.mean(axis=0)
    vectors = np.linalg.eigh(some.T @ some)[1]
    return np.ascontiguousarray(vectors[:, ::-1][:, :N_AXES], dtype=np.float32)


class LinearMap(nn.Module):
    """``x (I + change)``; `change` has shape (n_axes, n_axes) and starts as 0."""

    def __init__(self, n_axes: int) -> None:
        super().__init__()
        self.change = nn.Parameter(torch.zeros(n_axes, n_axes))

    def forward(self, x: Tensor) -> Tensor:
        """Map rows of shape (n, n_axes)."""
        return x @ (torch.eye(len(self.change)) + self.change)


class MetricTask(Task[Draw]):
    """A linear map after which points find the others of their identity.

    Parameters
    ----------
    projected : Tensor of shape (n_points, n_axes)
        The points along the axes that may change.
    sampler : PointSampler
    """

    network: LinearMap

    def __init__(self, projected: Tensor, sampler: PointSampler) -> None:
        super().__init__(LinearMap(projected.shape[1]))
        self.projected, self.sampler = projected, sampler

    def open_epoch(self, epoch: int) -> AbstractContextManager[Sequence[Draw]]:
        """All steps are one epoch."""
        return nullcontext([self.sampler.draw() for _ in range(_STEPS)])

    def losses(self, batch: Draw) -> dict[str, Tensor]:
        """Contrastive loss and the penalty of the change."""
        rows, identity = batch
        penalty = _PENALTY / len(self.sampler.size) * self.network.change.square().sum()
        return {
            "contrastive_loss": contrastive_loss(self.network(self.projected[rows]), identity),
            "penalty": penalty,
        }


def contrastive_loss(points: Tensor, identity: Tensor) -> Tensor:
    """Supervised contrastive loss with a margin, a scalar.

    ``-mean_i mean_j log softmax_j((cos_ij - margin [y_i = y_j]) / temperature)``, where j runs over
    the other points of i's identity. Points that are alone are not counted.

    Parameters
    ----------
    points : Tensor of shape (n_points, dim)
    identity : Tensor of shape (n_points,)
    """
    unit = F.normalize(points, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    same = (identity[:, None] == identity) & ~itself
    cosine = (unit @ unit.T - _MARGIN * same) / _TEMPERATURE
    log_share = torch.log_softmax(cosine.masked_fill(itself, -torch.inf), dim=1)
    n_same = same.sum(dim=1)
    found = log_share.masked_fill(~same, 0).sum(dim=1) / n_same.clamp(min=1)
    return -found.sum() / (n_same > 0).sum().clamp(min=1)


class PointSampler:
    """Draws some identities, and some points of each.

    Parameters
    ----------
    codes : ndarray of shape (n_points,)
        Identity of each point, from 0.
    rng : numpy Generator
    """

    def __init__(self, codes: IntArray, rng: np.random.Generator) -> None:
        self.rng = rng
        order = rng.permutation(len(codes))
        grouped, starts = sort_by_group(codes[order], int(codes.max(initial=-1)) + 1)
        self.points, self.start, self.size = order[grouped], starts[:-1], np.diff(starts)

    def draw(self) -> Draw:
        """Rows of points and their identities; no point twice."""
        count = min(_IDENTITIES, len(self.size))
        chosen = self.rng.choice(len(self.size), count, replace=False)
        size = self.size[chosen, None]
        key = self.rng.random((count, _WINDOW))
        key[np.arange(_WINDOW) >= size] = 2.0  # the identity has fewer members
        place = np.argsort(key, axis=1)[:, :_MEMBERS]
        exists = np.take_along_axis(key, place, axis=1) < 1
        first = self.rng.integers(self.size[chosen])[:, None]
        rows = self.points[self.start[chosen, None] + (first + place) % size]
        identity = np.broadcast_to(chosen[:, None], rows.shape)
        return torch.from_numpy(rows[exists]), torch.from_numpy(identity[exists])
