"""New members of identities, which scatter like real ones."""

import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.synthetic.member_scatter import MemberScatter

N_IDENTITIES, SIZE, DIM = 30, 40, 64


def scattered(length, axes=None, size=SIZE, seed=0):
    """Identities of one size whose members are offset by `length`, along some axes or all."""
    rng = np.random.default_rng(seed)
    centres = unit_rows(rng.normal(size=(N_IDENTITIES, DIM)))
    offset = rng.normal(size=(N_IDENTITIES, size, DIM)) / np.sqrt(DIM)
    if axes is not None:
        offset = np.einsum("nsd,nde,nfe->nsf", offset, axes, axes)
    points = centres[:, None] + length * offset
    around = np.repeat(centres, size, axis=0)
    return unit_rows(points.reshape(-1, DIM)).astype(np.float32), around.astype(np.float32)


def measure_scatter(points, around, size=SIZE):
    first = np.arange(0, len(points), size)
    return MemberScatter(points, around, first, np.full(len(first), size))


def draw_from(members, source, n_points, seed=1):
    """New members of one identity around a random centre, and that centre."""
    rng = np.random.default_rng(seed)
    centre = unit_rows(rng.normal(size=(1, DIM))).astype(np.float32)
    sources = np.full(n_points, source)
    return members.draw(sources, np.repeat(centre, n_points, axis=0), rng), centre[0]


def nearest_of(points):
    cosine = points @ points.T
    np.fill_diagonal(cosine, -1)
    return float(cosine.max(axis=1).mean())


def mean_of(points):
    return float((points @ points.T)[np.triu_indices(len(points), 1)].mean())


def test_new_members_have_the_projections_of_real_ones():
    real, around = scattered(0.8)
    points, centre = draw_from(measure_scatter(real, around), 3, 2000)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)
    own = (real * around).sum(axis=1)[3 * SIZE : 4 * SIZE]
    new = points @ centre
    assert new.mean() == pytest.approx(own.mean(), abs=0.02)
    assert new.std() == pytest.approx(own.std(), abs=0.015)


def test_a_large_identity_is_not_made_of_repeats():
    size = 400
    real, around = scattered(1.0, size=size)
    some = (np.arange(len(real)) % size) < SIZE  # forty of each four hundred are known
    members = measure_scatter(real[some], around[some])
    points, _ = draw_from(members, 0, size)
    goal = nearest_of(real[:size]) - mean_of(real[:size])
    assert nearest_of(points) - mean_of(points) == pytest.approx(goal, abs=0.1)
    repeated = real[some][:SIZE].repeat(size // SIZE, axis=0)
    assert nearest_of(repeated) > nearest_of(points) + 0.2  # repeats would be this near


def test_a_new_identity_is_stretched_along_the_axes_of_its_source():
    rng = np.random.default_rng(5)
    axes = np.stack([np.linalg.qr(rng.normal(size=(DIM, 3)))[0] for _ in range(N_IDENTITIES)])
    members = measure_scatter(*scattered(2.0, axes))
    points, centre = draw_from(members, 7, 500)
    residual = points - (points @ centre)[:, None] * centre
    along_own, along_other = (np.square(residual @ axes[one]).sum() for one in (7, 8))
    assert along_own > 0.5 * np.square(residual).sum()
    assert along_other < 0.2 * np.square(residual).sum()


def test_tightness_is_the_mean_cosine_with_the_centre():
    real, around = scattered(0.8)
    cosine = (real * around).sum(axis=1).reshape(N_IDENTITIES, SIZE)
    np.testing.assert_allclose(
        measure_scatter(real, around).tightness, cosine.mean(axis=1), rtol=1e-5
    )


def test_members_that_lie_on_their_centre_stay_there():
    points, centre = draw_from(measure_scatter(*scattered(0.0)), 0, 20)
    np.testing.assert_allclose(points @ centre, 1, atol=1e-3)
    assert np.isfinite(points).all()


def test_residuals_of_other_identities_are_of_members_with_similar_projections():
    members = measure_scatter(*scattered(0.8))
    models = np.argsort(members.projection)[[0, 1, 300, 600, 1198, 1199]].repeat(400)
    similar = members._draw_similar(models, np.random.default_rng(0))
    place = np.argsort(np.argsort(members.projection))
    away = np.abs(place[similar] - place[models]).reshape(6, 400)
    assert away[2:4].max() == 24  # two hundredths of 1,200
    assert away.max() <= 48  # at the ends from one side alone
    assert all(len(np.unique(row)) > 40 for row in similar.reshape(6, 400))
    assert (similar != models).mean() > 0.95
