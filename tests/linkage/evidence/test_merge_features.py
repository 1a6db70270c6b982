import numpy as np
import pytest

from hilander.graph.linked_pairs import LinkedPairs
from hilander.linkage.evidence.merge_features import N_MERGE_FEATURES, compute_merge_features


def pairs_of(count, total, size, inside, k=10):
    """Pairs 0-1 and 0-2 of three clusters."""
    return LinkedPairs(
        np.array([0, 0]), np.array([1, 2]),
        np.array(count, float), np.array(total, float),
        np.array(size, float), np.array(inside, float), k,
    )  # fmt: skip


PAIRS = pairs_of([20, 5], [16, 1], [30, 40, 4], [[200, 300, 10], [180, 150, 9]])


def test_features_are_finite_and_one_row_a_pair():
    found = compute_merge_features(PAIRS)
    assert found.shape == (2, N_MERGE_FEATURES)
    assert found.dtype == np.float32
    empty = pairs_of([1, 1], [0, 1], [1, 1, 1], np.zeros((2, 3)))
    assert np.isfinite(compute_merge_features(empty)).all()


def test_features_are_those_of_the_links_and_sizes():
    first = compute_merge_features(PAIRS)[0]
    assert first[0] == pytest.approx(np.log(0.8 / 0.2), rel=1e-5)  # mean linkage .8
    assert first[1] == pytest.approx(np.log(20 / (10 * 30)), rel=1e-5)  # of the smaller's edges
    assert first[2:4] == pytest.approx(np.log([30, 40]), rel=1e-5)
    inner = [(180 + 0.9) / 201, (150 + 0.9) / 301]
    assert first[4:6] == pytest.approx(sorted(np.log(x / (1 - x)) for x in inner), rel=1e-4)
    assert first[6:8] == pytest.approx([1, 16 / 17], rel=1e-5)  # cluster 1 has no other links


def test_the_order_of_the_two_clusters_does_not_matter():
    order = np.array([2, 1, 0])
    turned = LinkedPairs(
        np.array([1, 0]), np.array([2, 2]), PAIRS.count, PAIRS.total,
        PAIRS.size[order], PAIRS.inside[:, order], PAIRS.k,
    )  # fmt: skip
    np.testing.assert_allclose(compute_merge_features(turned), compute_merge_features(PAIRS))
