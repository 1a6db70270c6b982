import numpy as np
import pytest

from hilander.comparison.objective import mean_f
from hilander.comparison.rivals.threshold import (
    choose_threshold,
    cluster_by_threshold,
    grow_tree,
)
from hilander.errors import EmbeddingError, LabelError, SettingError
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities


def flood(features, threshold):
    """Components by the definition: spread along every pair that reaches the threshold."""
    joined = features @ features.T >= threshold
    labels = np.full(len(features), -1)
    for start in range(len(features)):
        if labels[start] >= 0:
            continue
        front = [start]
        while front:
            node = front.pop()
            labels[node] = start
            front += [n for n in np.flatnonzero(joined[node]) if labels[n] < 0]
    return labels


def same_partition(a, b):
    pairs = np.unique(np.stack([a, b]), axis=1).shape[1]
    return pairs == len(np.unique(a)) == len(np.unique(b))


@pytest.mark.parametrize("threshold", [-1.0, 0.2, 0.55, 0.8, 0.95, 1.0])
def test_clusters_are_the_components_of_all_pairs_that_reach_the_threshold(threshold):
    X, _ = make_identities(n_identities=9, size=12, dim=4, spread=0.6, seed=2)
    # Off the exact cosines, whose last bit depends on how a product is blocked.
    assert same_partition(cluster_by_threshold(X, threshold), flood(X, threshold - 1e-6))


def test_a_higher_threshold_only_splits():
    X, _ = make_identities(n_identities=9, size=12, dim=4, spread=0.6, seed=3)
    tree = grow_tree(X)
    coarse = tree.cut(0.5)
    for threshold in (0.7, 0.9):
        fine = tree.cut(threshold)
        assert len(np.unique(np.stack([fine, coarse]), axis=1).T) == fine.max() + 1
        coarse = fine


def test_the_chosen_threshold_finds_well_separated_identities():
    X, y = make_identities(n_identities=20, size=10, dim=32, spread=0.3, seed=0)
    threshold = choose_threshold(X, np.array([f"person {label}" for label in y]))
    X_new, y_new = make_identities(n_identities=20, size=10, dim=32, spread=0.3, seed=1)
    assert bcubed_f(y_new, cluster_by_threshold(X_new, threshold)) > 0.95


def test_no_threshold_of_a_fine_grid_is_much_better_than_the_chosen_one():
    X, y = make_identities(n_identities=15, size=10, dim=6, spread=0.5, seed=5)
    chosen = mean_f(y, cluster_by_threshold(X, choose_threshold(X, y)))
    tree = grow_tree(X)
    assert chosen >= max(mean_f(y, tree.cut(t)) for t in np.linspace(-1, 1, 301)) - 0.02


def test_exact_duplicates_are_one_cluster_at_any_threshold():
    X = np.repeat(np.eye(3, dtype=np.float32), 5, axis=0)
    assert cluster_by_threshold(X, 1.0).tolist() == np.repeat(np.arange(3), 5).tolist()


def test_what_means_nothing_is_refused():
    X, y = make_identities(n_identities=3, size=4, dim=4)
    with pytest.raises(SettingError, match="not a cosine"):
        cluster_by_threshold(X, 1.5)
    with pytest.raises(LabelError, match="11 labels for 12"):
        choose_threshold(X, y[1:])
    with pytest.raises(EmbeddingError, match="at least 2"):
        cluster_by_threshold(X[:1], 0.5)
