import numpy as np
import pytest

from hilander.errors import LabelError, SettingError
from hilander.metrics.examples import largest_clusters, worst_mistakes


def test_the_largest_clusters_are_complete_and_in_order():
    labels = np.array(["b", "a", "c", "a", "b", "a"])
    found = largest_clusters(labels, 2)
    assert [rows.tolist() for rows in found] == [[1, 3, 5], [0, 4]]


@pytest.mark.parametrize("seed", range(10))
def test_the_largest_clusters_equal_those_of_a_full_search(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 15, 100)
    found = largest_clusters(labels, 6)
    sizes = sorted((int((labels == c).sum()) for c in set(labels.tolist())), reverse=True)
    assert [len(rows) for rows in found] == sizes[:6]
    for rows in found:
        assert rows.tolist() == np.flatnonzero(labels == labels[rows[0]]).tolist()


def test_a_count_above_the_number_of_clusters_gives_all():
    assert len(largest_clusters([1, 1, 2], 10)) == 2


@pytest.mark.parametrize("seed", range(10))
def test_the_worst_mistakes_hold_most_points_of_a_wrong_identity(seed):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 12, 150)
    pred = np.where(rng.random(150) < 0.6, true, rng.integers(0, 20, 150))

    def misplaced(rows):
        return len(rows) - int(np.unique(true[rows], return_counts=True)[1].max())

    every = [misplaced(np.flatnonzero(pred == c)) for c in set(pred.tolist())]
    found = worst_mistakes(true, pred, 4)
    assert [misplaced(rows) for rows in found] == sorted(every, reverse=True)[:4]


def test_pure_clusters_are_not_mistakes():
    true = np.array([0, 0, 1, 1, 2, 2])
    assert worst_mistakes(true, true, 3) == []
    assert worst_mistakes(true, np.arange(6), 3) == []
    mixed = worst_mistakes(true, [0, 0, 1, 1, 1, 2], 3)
    assert [rows.tolist() for rows in mixed] == [[2, 3, 4]]


def test_invalid_counts_and_labels_are_refused():
    with pytest.raises(SettingError, match="count=0"):
        largest_clusters([1, 2], 0)
    with pytest.raises(SettingError, match="count=-1"):
        worst_mistakes([1, 2], [1, 1], -1)
    with pytest.raises(LabelError, match="no labels"):
        largest_clusters([], 1)
