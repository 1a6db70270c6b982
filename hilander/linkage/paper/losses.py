"""Connectivity and density losses (eqs. 8 to 11)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from hilander.linkage.paper.lander import same_probability


@dataclass(frozen=True)
class LossSettings:
    """How the connectivity loss weighs edges.

    Parameters
    ----------
    balance : bool
        Down-sample the more frequent of positive and negative edges, in each batch again.
    focal_gamma : float
        Exponent of the focal loss; 0 is plain cross-entropy, the released code's option is 2.
    """

    balance: bool = False
    focal_gamma: float = 0.0


@dataclass(frozen=True, eq=False)
class EdgeTargets:
    """Ground truth of a batch of nodes.

    Parameters
    ----------
    affinity : Tensor of shape (n_batch, k)
    same : Tensor of shape (n_batch, k), int64
        ``q_ij``: 1 where both ends are one identity.
    density : Tensor of shape (n_batch,)
        ``d_i`` from the labels.
    counted : Tensor of shape (n_batch, k), bool
        Edges the connectivity loss counts: those with ``d_i <= d_j``.
    """

    affinity: Tensor
    same: Tensor
    density: Tensor
    counted: Tensor


@dataclass(frozen=True, eq=False)
class Loss:
    """The total (eq. 8, the plain sum) and its two parts; each a scalar Tensor."""

    connectivity: Tensor
    density: Tensor

    @property
    def total(self) -> Tensor:
        """``L = L_conn + L_den`` (eq. 8)."""
        return self.connectivity + self.density


def lander_loss(
    logits: Tensor, targets: EdgeTargets, settings: LossSettings, generator: torch.Generator
) -> Loss:
    """Compare predicted edges with the ground truth.

    Parameters
    ----------
    logits : Tensor of shape (n_batch, k, 2)
    targets : EdgeTargets of n_batch nodes
    settings : LossSettings
    generator : torch.Generator
        Draws the edges that balancing keeps.

    Returns
    -------
    loss : Loss
    """
    counted = targets.counted
    if settings.balance:
        counted = balance_edges(counted, targets.same, generator)
    return Loss(
        connectivity_loss(logits[counted], targets.same[counted], settings.focal_gamma),
        density_loss(same_probability(logits), targets),
    )


def connectivity_loss(logits: Tensor, same: Tensor, focal_gamma: float) -> Tensor:
    """Mean cross-entropy of the counted edges (eqs. 9, 10), focal if gamma > 0.

    ``-(1 - p_true)^gamma log p_true``; 0 if no edge of the batch is counted.

    Parameters
    ----------
    logits : Tensor of shape (n_edges, 2)
    same : Tensor of shape (n_edges,), int64
    focal_gamma : float
    """
    if not len(same):
        return logits.sum() * 0
    cross_entropy = F.cross_entropy(logits, same, reduction="none")
    if focal_gamma > 0:
        cross_entropy = (1 - torch.exp(-cross_entropy)) ** focal_gamma * cross_entropy
    return cross_entropy.mean()


def density_loss(same_probability: Tensor, targets: EdgeTargets) -> Tensor:
    """Mean squared error of the predicted density (eq. 11).

    Parameters
    ----------
    same_probability : Tensor of shape (n_batch, k)
    targets : EdgeTargets
    """
    predicted = (targets.affinity * (2 * same_probability - 1)).mean(dim=1)
    return F.mse_loss(predicted, targets.density)


def balance_edges(counted: Tensor, same: Tensor, generator: torch.Generator) -> Tensor:
    """Drop counted edges at random until positives and negatives are equally many.

    Parameters
    ----------
    counted : Tensor of shape (n_batch, k), bool
    same : Tensor of shape (n_batch, k), int64
    generator : torch.Generator

    Returns
    -------
    kept : Tensor of shape (n_batch, k), bool
    """
    positive = torch.nonzero((counted & (same == 1)).flatten()).flatten()
    negative = torch.nonzero((counted & (same == 0)).flatten()).flatten()
    fewer = min(len(positive), len(negative))
    kept = torch.zeros(counted.numel(), dtype=torch.bool, device=counted.device)
    for edges in (positive, negative):
        order = torch.randperm(len(edges), generator=generator).to(edges.device)
        kept[edges[order[:fewer]]] = True
    return kept.view_as(counted)
