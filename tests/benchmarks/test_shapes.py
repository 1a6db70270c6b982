"""The generated training sets of the pretrained model."""

import numpy as np
import pytest

from benchmarks.shapes import (
    KINDS,
    draw_counts,
    draw_shape,
    fall_off,
    make_plain,
    make_shaped,
    neighbour_purity,
)


@pytest.mark.parametrize("seed", range(4))
def test_a_set_is_as_hard_as_it_was_drawn_to_be(seed):
    # The last bisection gives the scale, so one step of it is the precision.
    goal = draw_shape(np.random.default_rng(seed), "even").hardness
    features, labels = make_shaped(np.random.default_rng(seed), 1500, "even")
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    assert features.any(axis=1).all()
    assert len(features) == len(labels)
    assert neighbour_purity(features.astype(np.float64), labels) == pytest.approx(goal, abs=0.06)


def test_an_easier_set_is_the_same_with_members_nearer_to_their_centres():
    hard, easy = (
        make_shaped(np.random.default_rng(0), 600, "even", easier=easier) for easier in (1.0, 0.3)
    )
    np.testing.assert_array_equal(hard[1], easy[1])
    purity = [
        neighbour_purity(features.astype(np.float64), labels) for features, labels in (hard, easy)
    ]
    assert purity[0] < 0.97
    assert purity[1] > purity[0] + 0.02


def test_plain_sets_are_spherical_clusters():
    features, labels = make_plain(np.random.default_rng(3), 3000, "even-small")
    centres = np.stack([features[labels == one].mean(axis=0) for one in range(labels.max() + 1)])
    scatter = (features - centres[labels]).std(axis=0)
    assert scatter.max() < 1.2 * scatter.min()  # alike in all directions
    assert 0.8 < centres.std() < 1.2


def test_equal_seeds_give_equal_sets_and_other_seeds_other_sets():
    one, same, other = (make_shaped(np.random.default_rng(seed), 300) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one[0], same[0])
    np.testing.assert_array_equal(one[1], same[1])
    assert one[0].shape != other[0].shape or not np.array_equal(one[0], other[0])


def test_shapes_differ():
    shapes = [draw_shape(np.random.default_rng(seed)) for seed in range(40)]
    assert {shape.kind for shape in shapes} == set(KINDS)
    assert len({shape.dim for shape in shapes}) == 4
    assert {shape.warp for shape in shapes} == {"none", "relu", "tanh"}
    hardness = [shape.hardness for shape in shapes]
    assert min(hardness) < 0.65
    assert max(hardness) > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_add_up_and_vary_as_their_kind_says(kind):
    spread, singles = [], []
    for seed in range(10):
        counts = draw_counts(kind, 2000, np.random.default_rng(seed))
        assert counts.min() >= 1
        assert 2000 <= counts.sum() <= 2000 + 666
        spread.append(np.log(counts).std())
        singles.append((counts == 1).mean())
    assert (max(spread) < 0.35) == kind.startswith("even")
    assert (np.mean(singles) > 0.5) == (kind == "singles")


def test_deviations_fall_off_and_add_up():
    flat, steep = fall_off(10, 0.0, 4), fall_off(10, 1.5, 10)
    np.testing.assert_allclose(flat, [0.5] * 4 + [0] * 6)
    assert (np.diff(steep) < 0).all()
    assert (steep**2).sum() == pytest.approx(1)
