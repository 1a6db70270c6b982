"""A linear map that is learned from labelled identities, and applied to others."""

import numpy as np
import pytest
import torch

from hilander.arrays.rows import unit_rows
from hilander.engines.threads import open_workers
from hilander.training import metric
from hilander.training.metric import (
    PointSampler,
    contrastive_loss,
    find_principal_axes,
    learn_metric,
)


def turned(n_identities, size, seed=0, dim=24, n_separating=6):
    """Identities that differ along a few directions; points differ equally along all."""
    rng = np.random.default_rng([seed, n_identities])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0]
    labels = np.repeat(np.arange(n_identities), size)
    centres = rng.normal(size=(n_identities, dim)) * (np.arange(dim) < n_separating)
    points = centres[labels] + 0.35 * rng.normal(size=(len(labels), dim))
    return unit_rows((points @ turn).astype(np.float32)), labels


def nearest_are_right(features, labels):
    cosine = features @ features.T
    np.fill_diagonal(cosine, -2)
    return float((labels[cosine.argmax(axis=1)] == labels).mean())


def test_identities_outside_the_training_set_are_separated_better():
    transform = learn_metric(*turned(80, 8))
    features, labels = turned(80, 8, seed=1)
    before, after = (
        nearest_are_right(one, labels) for one in (features, unit_rows(features @ transform))
    )
    assert after > before + 0.1


def test_a_map_changes_less_with_fewer_training_identities():
    change = [np.linalg.norm(learn_metric(*turned(n, 8)) - np.eye(24)) for n in (5, 20, 80)]
    assert 0 < 2 * change[0] < change[1] < change[2]


@pytest.mark.parametrize("labels", [np.arange(10), np.arange(10)[::-1] * 3])
def test_identities_of_one_point_change_nothing(labels):
    features = turned(10, 1)[0]
    np.testing.assert_array_equal(learn_metric(features, labels), np.eye(24))


@pytest.mark.parametrize("dim", [24, 300])
def test_the_same_seed_gives_the_same_map_with_any_number_of_threads(dim, monkeypatch):
    features, labels = turned(20, 12, dim=dim)
    threads, found, used = torch.get_num_threads(), [], []

    def count_threads(*arguments):
        used.append(torch.get_num_threads())
        return contrastive_loss(*arguments)

    monkeypatch.setattr(metric, "contrastive_loss", count_threads)
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            with open_workers():  # as in the choice of a map
                found.append(learn_metric(features, labels, seed=3))
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*found)
    assert set(used) == {1}
    assert np.abs(learn_metric(features, labels, seed=4) - found[0]).max() > 1e-4


def test_only_the_principal_axes_are_changed(monkeypatch):
    monkeypatch.setattr(metric, "N_AXES", 6)
    features, labels = turned(30, 8)
    transform = learn_metric(features, labels)
    basis = find_principal_axes(features)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-5)
    across = np.eye(24) - basis @ basis.T
    np.testing.assert_allclose(across @ transform, across, atol=1e-5)
    np.testing.assert_allclose(transform @ across, across, atol=1e-5)
    assert np.linalg.norm(transform - np.eye(24)) > 0.1


def test_the_principal_axes_are_those_of_the_largest_variance(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 5)) * (0.1, 3, 0.1, 2, 0.1) + 10
    np.testing.assert_array_equal(find_principal_axes(rows.astype(np.float32)), np.eye(5))
    monkeypatch.setattr(metric, "N_AXES", 2)
    basis = find_principal_axes(rows.astype(np.float32))
    assert basis.shape == (5, 2)
    assert abs(basis[1, 0]) > 0.99
    assert abs(basis[3, 1]) > 0.99


def test_the_contrastive_loss_is_its_formula():
    rows = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0]])
    margin, temperature = metric._MARGIN, metric._TEMPERATURE
    identity = torch.tensor([4, 4, 7])  # the last one is alone
    same, first, second = 0.6 - margin, 0.0, 0.8
    shares = [
        np.exp(same / temperature) / (np.exp(same / temperature) + np.exp(other / temperature))
        for other in (first, second)
    ]
    expected = -np.log(shares).mean()
    assert float(contrastive_loss(rows, identity)) == pytest.approx(expected, rel=1e-5)
    assert float(contrastive_loss(rows, torch.arange(3))) == 0


def test_points_are_drawn_at_most_once_and_of_every_identity():
    sizes = np.array([1, 2, 5, 300])
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    sampler = PointSampler(labels, np.random.default_rng(1))
    seen = set()
    for _ in range(300):
        rows, identity = (one.numpy() for one in sampler.draw())
        np.testing.assert_array_equal(labels[rows], identity)
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(np.bincount(identity), np.minimum(sizes, metric._MEMBERS))
        seen |= set(rows.tolist())
    assert len(seen) > 0.95 * len(labels)  # also the last members of the large one


def test_a_step_draws_at_most_so_many_identities(monkeypatch):
    monkeypatch.setattr(metric, "_IDENTITIES", 3)
    sampler = PointSampler(np.repeat(np.arange(9), 4), np.random.default_rng(0))
    drawn = [np.unique(sampler.draw()[1].numpy()) for _ in range(40)]
    assert all(len(one) == 3 for one in drawn)
    assert len(np.unique(drawn)) == 9
