"""A linear map that is learnt from labelled identities, for others."""

import numpy as np
import pytest
import torch

from hilander.arrays.rows import unit_rows
from hilander.engines.threads import open_workers
from hilander.training.metric import find_principal_axes, learn_metric, tell_apart
from hilander.training.paper.recipe import metric


def turned(n_identities, size, seed=0, dim=24, context_inputs=6):
    """Identities that a few directions tell apart; along the others all points differ alike."""
    rng = np.random.default_rng([seed, n_identities])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0]
    labels = np.repeat(np.arange(n_identities), size)
    centres = rng.normal(size=(n_identities, dim)) * (np.arange(dim) < context_inputs)
    points = centres[labels] + 0.35 * rng.normal(size=(len(labels), dim))
    return unit_rows((points @ turn).astype(np.float32)), labels


def nearest_are_right(features, labels):
    cosine = features @ features.T
    np.fill_diagonal(cosine, -2)
    return float((labels[cosine.argmax(axis=1)] == labels).mean())


def test_identities_that_did_not_teach_are_told_apart_better():
    transform = learn_metric(*turned(80, 8))
    features, labels = turned(80, 8, seed=1)
    before, after = (
        nearest_are_right(one, labels) for one in (features, unit_rows(features @ transform))
    )
    assert after > before + 0.1


def test_few_identities_change_less_than_many():
    change = [np.linalg.norm(learn_metric(*turned(n, 8)) - np.eye(24)) for n in (5, 20, 80)]
    assert 0 < 2 * change[0] < change[1] < change[2]


@pytest.mark.parametrize("labels", [np.arange(10), np.arange(10)[::-1] * 3])
def test_identities_of_one_point_change_nothing(labels):
    features = turned(10, 1)[0]
    np.testing.assert_array_equal(learn_metric(features, labels), np.eye(24))


@pytest.mark.parametrize("dim", [24, 300])
def test_same_seed_same_map_with_any_number_of_threads(dim, monkeypatch):
    features, labels = turned(20, 12, dim=dim)
    threads, found, asked = torch.get_num_threads(), [], []

    def notice(*shown):
        asked.append(torch.get_num_threads())
        return tell_apart(*shown)

    monkeypatch.setattr(metric, "tell_apart", notice)
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            with open_workers():  # as whoever chooses a map does
                found.append(learn_metric(features, labels, seed=3))
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*found)
    assert set(asked) == {1}
    assert np.abs(learn_metric(features, labels, seed=4) - found[0]).max() > 1e-4


def test_only_the_widest_directions_are_changed(monkeypatch):
    monkeypatch.setattr(metric, "WIDEST", 6)
    features, labels = turned(30, 8)
    transform = learn_metric(features, labels)
    basis = find_principal_axes(features)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-5)
    across = np.eye(24) - basis @ basis.T
    np.testing.assert_allclose(across @ transform, across, atol=1e-5)
    np.testing.assert_allclose(transform @ across, across, atol=1e-5)
    assert np.linalg.norm(transform - np.eye(24)) > 0.1


def test_the_widest_directions_are_those_that_rows_differ_along(monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 5)) * (0.1, 3, 0.1, 2, 0.1) + 10
    np.testing.assert_array_equal(find_principal_axes(rows.astype(np.float32)), np.eye(5))
    monkeypatch.setattr(metric, "WIDEST", 2)
    basis = find_principal_axes(rows.astype(np.float32))
    assert basis.shape == (5, 2)
    assert abs(basis[1, 0]) > 0.99
    assert abs(basis[3, 1]) > 0.99


def test_the_loss_is_how_badly_a_point_finds_its_own():
    rows = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 2.0]])
    margin, temperature = metric._MARGIN, metric._TEMPERATURE
    identity = torch.tensor([4, 4, 7])  # the last one has no company
    same, first, second = 0.6 - margin, 0.0, 0.8
    shares = [
        np.exp(same / temperature) / (np.exp(same / temperature) + np.exp(other / temperature))
        for other in (first, second)
    ]
    expected = -np.log(shares).mean()
    assert float(tell_apart(rows, identity)) == pytest.approx(expected, rel=1e-5)
    assert float(tell_apart(rows, torch.arange(3))) == 0


def test_points_are_drawn_once_and_of_every_identity():
    sizes = np.array([1, 2, 5, 300])
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    draw = metric._Draw(labels, np.random.default_rng(1))
    seen = set()
    for _ in range(300):
        rows, identity = (one.numpy() for one in draw())
        np.testing.assert_array_equal(labels[rows], identity)
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(np.bincount(identity), np.minimum(sizes, metric._MEMBERS))
        seen |= set(rows.tolist())
    assert len(seen) > 0.95 * len(labels)  # not the first members of the large one alone


def test_of_many_identities_some_are_drawn(monkeypatch):
    monkeypatch.setattr(metric, "_IDENTITIES", 3)
    draw = metric._Draw(np.repeat(np.arange(9), 4), np.random.default_rng(0))
    drawn = [np.unique(draw()[1].numpy()) for _ in range(40)]
    assert all(len(one) == 3 for one in drawn)
    assert len(np.unique(drawn)) == 9
