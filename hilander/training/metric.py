"""A learned metric: a linear map after which members of an identity are nearer than strangers.

An embedder was trained for other identities, or for something else. What of its directions tell
identities apart, and which of them together, labels show. The map starts as no change at all and
is held to that, the more the fewer identities speak for another: few would be learnt by heart.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
from hilander.learning.device import one_thread

# Directions that the map may turn and stretch, the widest ones; the others it leaves alone.
WIDEST = 256
_MOST_ROWS = 20_000  # which show what the widest directions are
_STEPS = 200
_RATE = 3e-3
_IDENTITIES, _MEMBERS = 128, 5  # in a step
_AMONG = 64  # members of an identity that those of one step are drawn from
_TEMPERATURE, _MARGIN = 0.1, 0.1  # of cosines
# What it takes to change the map, in identities: unseen characters gain most near this share of
# those that teach, whether 20, 50, 100, 200 or 270 do.
_HELD_BY = 4.0


def learn_metric(
    features: FloatArray, labels: IntArray, *, seed: int = 0, basis: FloatArray | None = None
) -> FloatArray:
    """Learn a map by which each point tells its identity from those of other points.

    Each step draws members of some identities. A point has to find the others of its identity
    among all, by cosine and with a margin (the supervised contrastive loss).

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,)
    seed : int
    basis : ndarray of shape (dim, n_widest), optional
        Directions that may be changed, as `find_principal_axes` gives them; those of the features.

    Returns
    -------
    transform : ndarray of shape (dim, dim), float32
        To be multiplied from the right; no change where no identity has two points.
    """
    dim = features.shape[1]
    codes = np.unique(labels, return_inverse=True)[1]
    basis = find_principal_axes(features) if basis is None else basis
    draw = _Draw(codes, np.random.default_rng([seed, 5]))
    if draw.size.max(initial=0) < 2:
        return np.eye(dim, dtype=np.float32)
    shown = torch.from_numpy(np.ascontiguousarray(features @ basis))
    start = torch.eye(basis.shape[1])
    change = torch.zeros_like(start, requires_grad=True)
    # A step is too small for a GPU.
    optimizer = torch.optim.Adam([change], _RATE)
    with one_thread():
        for step in range(_STEPS):
            optimizer.param_groups[0]["lr"] = _RATE * (1 - step / _STEPS)
            rows, identity = draw()
            loss = tell_apart(shown[rows] @ (start + change), identity)
            loss = loss + _HELD_BY / len(draw.size) * change.square().sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    learnt = change.detach().numpy()
    transform: FloatArray = np.eye(dim, dtype=np.float32) + basis @ learnt @ basis.T
    return transform


def find_principal_axes(features: FloatArray) -> FloatArray:
    """The directions along which rows differ most, as columns, shape (dim, n_widest), float32."""
    dim = features.shape[1]
    if dim <= WIDEST:
        return np.eye(dim, dtype=np.float32)
    step = -(-len(features) // _MOST_ROWS)
    some = features[::step].astype(np.float64)
    some -= some.mean(axis=0)
    vectors = np.linalg.eigh(some.T @ some)[1]
    return np.ascontiguousarray(vectors[:, ::-1][:, :WIDEST], dtype=np.float32)


def tell_apart(moved: Tensor, identity: Tensor) -> Tensor:
    """How badly points find their own identity: the mean over points that have company.

    Parameters
    ----------
    moved : Tensor of shape (n_points, dim)
    identity : Tensor of shape (n_points,)
    """
    unit = F.normalize(moved, dim=1)
    itself = torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    same = (identity[:, None] == identity) & ~itself
    cosine = (unit @ unit.T - _MARGIN * same) / _TEMPERATURE
    log_share = torch.log_softmax(cosine.masked_fill(itself, -torch.inf), dim=1)
    company = same.sum(dim=1)
    found = log_share.masked_fill(~same, 0).sum(dim=1) / company.clamp(min=1)
    return -found.sum() / (company > 0).sum().clamp(min=1)


class _Draw:
    """Draws some identities, and some points of each."""

    def __init__(self, codes: IntArray, rng: np.random.Generator) -> None:
        self.rng = rng
        order = rng.permutation(len(codes))
        grouped, starts = sort_by_group(codes[order], int(codes.max(initial=-1)) + 1)
        self.points, self.start, self.size = order[grouped], starts[:-1], np.diff(starts)

    def __call__(self) -> tuple[Tensor, Tensor]:
        """Points and their identities, each of shape (n_drawn,)."""
        count = min(_IDENTITIES, len(self.size))
        chosen = self.rng.choice(len(self.size), count, replace=False)
        size = self.size[chosen, None]
        turn = self.rng.random((count, _AMONG))
        turn[np.arange(_AMONG) >= size] = 2.0  # there is no such member
        place = np.argsort(turn, axis=1)[:, :_MEMBERS]
        real = np.take_along_axis(turn, place, axis=1) < 1
        first = self.rng.integers(self.size[chosen])[:, None]
        rows = self.points[self.start[chosen, None] + (first + place) % size]
        identity = np.broadcast_to(chosen[:, None], rows.shape)
        return torch.from_numpy(rows[real]), torch.from_numpy(identity[real])
