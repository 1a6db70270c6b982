import numpy as np
import pytest

from hilander.arrays import rows as arrays
from hilander.embeddings.regions import take_regions
from hilander.synthetic.identities import make_identities


def nearest_of_anchors(points, n_regions, size, seed=0):
    """The rows that `take_regions` must return, by sorting all cosines."""
    chosen = np.random.default_rng([seed, 5]).choice(len(points), n_regions, replace=False)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    order = np.argsort(-(unit[chosen] @ unit.T), axis=1)[:, :size]
    return np.unique(order)


@pytest.mark.parametrize("block", [50, 1 << 22])
def test_regions_are_the_nearest_neighbours_of_random_points(monkeypatch, block):
    points = make_identities(n_identities=40, size=20, dim=10, spread=0.6, seed=0)[0]
    points = points * np.random.default_rng(1).uniform(0.5, 2, size=(len(points), 1))
    points = points.astype(np.float32)
    monkeypatch.setattr(arrays, "_BLOCK_VALUES", block)
    rows = take_regions(points, n_regions=5, size=30)
    np.testing.assert_array_equal(rows, nearest_of_anchors(points, 5, 30))
    assert not np.array_equal(rows, take_regions(points, n_regions=5, size=30, seed=1))


def test_a_region_holds_whole_identities_and_a_random_sample_does_not():
    points, labels = make_identities(n_identities=200, size=20, dim=32, spread=0.3, seed=2)
    taken = labels[take_regions(points, n_regions=8, size=40)]
    assert len(taken) <= 8 * 40
    whole = np.bincount(taken, minlength=200) == 20
    assert whole.sum() >= 8


def test_a_small_set_is_taken_whole():
    points = make_identities(n_identities=5, size=10, dim=8)[0]
    np.testing.assert_array_equal(take_regions(points, 5, 10), np.arange(50))


def test_a_mapped_file_of_half_precision_is_read(tmp_path):
    points = make_identities(n_identities=30, size=20, dim=16, spread=0.5, seed=3)[0]
    np.save(tmp_path / "points.npy", points.astype(np.float16))
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    expected = take_regions(points.astype(np.float16).astype(np.float32), 4, 20)
    np.testing.assert_array_equal(take_regions(mapped, 4, 20), expected)
