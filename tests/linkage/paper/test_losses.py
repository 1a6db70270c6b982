import math

import pytest
import torch

from hilander.linkage.paper.losses import (
    EdgeTargets,
    LossSettings,
    balance_edges,
    connectivity_loss,
    density_loss,
    lander_loss,
)


def logits_of(p):
    """Logits whose softmax gives P(same) = p."""
    p = torch.as_tensor(p, dtype=torch.float32)
    return torch.stack([torch.log(1 - p), torch.log(p)], dim=-1)


def targets(counted=((True, True), (False, True))):
    return EdgeTargets(
        affinity=torch.tensor([[0.8, 0.4], [0.8, 0.2]]),
        same=torch.tensor([[1, 0], [1, 0]]),
        density=torch.tensor([0.2, 0.3]),
        counted=torch.tensor(counted),
    )


P = [[0.9, 0.3], [0.5, 0.8]]


def test_the_loss_by_hand():
    loss = lander_loss(logits_of(P), targets(), LossSettings(), torch.Generator())
    # Edge (1, 0) has d_i > d_j and is not counted.
    connectivity = -(math.log(0.9) + math.log(0.7) + math.log(0.2)) / 3
    first = (0.8 * 0.8 + 0.4 * -0.4) / 2
    second = (0.8 * 0.0 + 0.2 * 0.6) / 2
    density = ((first - 0.2) ** 2 + (second - 0.3) ** 2) / 2
    assert loss.connectivity.item() == pytest.approx(connectivity, abs=1e-6)
    assert loss.density.item() == pytest.approx(density, abs=1e-6)
    assert loss.total.item() == pytest.approx(connectivity + density, abs=1e-6)


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_the_focal_loss_by_hand(gamma):
    found = connectivity_loss(logits_of([0.9, 0.3]), torch.tensor([1, 0]), gamma)
    expected = -(0.1**gamma * math.log(0.9) + 0.3**gamma * math.log(0.7)) / 2
    assert found.item() == pytest.approx(expected, abs=1e-6)


def test_density_loss_is_zero_at_the_truth():
    truth = targets()
    exact = (truth.affinity * (2 * torch.tensor(P) - 1)).mean(dim=1)
    right = EdgeTargets(truth.affinity, truth.same, exact, truth.counted)
    assert density_loss(torch.tensor(P), right).item() == pytest.approx(0, abs=1e-12)


def test_without_counted_edges_the_loss_is_zero_and_has_a_gradient():
    logits = logits_of(P).requires_grad_()
    nothing = targets(counted=((False, False), (False, False)))
    loss = lander_loss(logits, nothing, LossSettings(), torch.Generator())
    assert loss.connectivity.item() == 0
    loss.total.backward()
    assert torch.isfinite(logits.grad).all()


def uneven():
    generator = torch.Generator().manual_seed(5)
    same = (torch.rand(200, 6, generator=generator) < 0.8).long()
    counted = torch.rand(200, 6, generator=generator) < 0.7
    return counted, same


def test_balancing_keeps_as_many_positives_as_negatives():
    counted, same = uneven()
    kept = balance_edges(counted, same, torch.Generator().manual_seed(0))
    assert not (kept & ~counted).any()
    negatives = (counted & (same == 0)).sum()
    assert (kept & (same == 1)).sum() == (kept & (same == 0)).sum() == negatives


def test_balancing_draws_again_each_time_and_the_same_from_the_same_seed():
    counted, same = uneven()
    generator = torch.Generator().manual_seed(0)
    one = balance_edges(counted, same, generator)
    two = balance_edges(counted, same, generator)
    assert not torch.equal(one, two)
    assert torch.equal(one, balance_edges(counted, same, torch.Generator().manual_seed(0)))


def test_every_positive_is_kept_in_some_draw():
    counted, same = uneven()
    generator, ever = torch.Generator().manual_seed(0), torch.zeros_like(counted)
    for _ in range(40):
        ever |= balance_edges(counted, same, generator)
    assert torch.equal(ever, counted)


def test_the_loss_uses_the_balanced_edges():
    counted, same = uneven()
    probability = torch.full(same.shape, 0.9)
    truth = EdgeTargets(torch.ones(same.shape), same, torch.zeros(len(same)), counted)
    loss = lander_loss(logits_of(probability), truth, LossSettings(balance=True), torch.Generator())
    # Half positives, half negatives, each at P(same) = 0.9.
    expected = -(math.log(0.9) + math.log(0.1)) / 2
    assert loss.connectivity.item() == pytest.approx(expected, abs=1e-5)
