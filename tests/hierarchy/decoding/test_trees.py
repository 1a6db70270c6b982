import numpy as np
import pytest

from hilander.errors import GraphError
from hilander.hierarchy.decoding.trees import find_roots, label_trees


def random_forest(seed, n_nodes, share_of_roots):
    """Every parent comes earlier in a random order, so there is no cycle."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_nodes)
    parent = np.arange(n_nodes)
    for place in range(1, n_nodes):
        if rng.uniform() > share_of_roots:
            parent[order[place]] = order[rng.integers(place)]
    return parent


def follow(parent, node):
    while parent[node] != node:
        node = parent[node]
    return node


@pytest.mark.parametrize("share_of_roots", [0.0, 0.1, 0.9, 1.0])
def test_pointer_doubling_ends_where_following_parents_ends(share_of_roots):
    for seed in range(10):
        parent = random_forest(seed, 200, share_of_roots)
        expected = [follow(parent, node) for node in range(len(parent))]
        np.testing.assert_array_equal(find_roots(parent), expected)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 1_023, 1_024, 1_025, 100_000])
def test_a_chain_of_any_length_has_one_root(length):
    rising = np.maximum(np.arange(length) - 1, 0)
    assert not find_roots(rising).any()
    falling = np.minimum(np.arange(length) + 1, length - 1)
    assert (find_roots(falling) == length - 1).all()


def test_the_parents_are_left_as_they_were():
    parent = random_forest(0, 50, 0.1)
    before = parent.copy()
    find_roots(parent)
    label_trees(parent)
    np.testing.assert_array_equal(parent, before)


@pytest.mark.parametrize("cycle", [[1, 0], [1, 2, 0], [0, 2, 3, 1], [*range(1, 64), 0]])
def test_a_cycle_is_refused(cycle):
    with pytest.raises(GraphError, match="cycle"):
        find_roots(np.array(cycle))


def test_trees_are_numbered_by_the_order_of_their_peaks():
    for seed in range(10):
        parent = random_forest(seed, 120, 0.2)
        labels, peaks = label_trees(parent)
        assert (np.diff(peaks) > 0).all()
        np.testing.assert_array_equal(parent[peaks], peaks)
        np.testing.assert_array_equal(labels[peaks], np.arange(len(peaks)))
        np.testing.assert_array_equal(peaks[labels], find_roots(parent))
