"""Constraints hold exactly: at every level, for all decoders, in cuts of the merge tree."""

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.decoding.decode import DECODERS
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from tests.scorers import score_by_affinity

WITHOUT_EXTRA = [one for one in DECODERS if one != "infomap"]


@pytest.fixture(scope="module")
def points():
    return make_identities(n_identities=20, size=15, dim=16, spread=0.8, seed=3)


def cluster(features, constraints=None, decoder="parents", **rules):
    given = {"k": 4, "p_tau": 0.4} | rules
    steps = walk_levels(
        features, score_by_affinity, Rules(decoder=decoder, **given), constraints=constraints
    )
    hierarchy = Hierarchy.of_steps(steps, keep_graph=True)
    hierarchy.constraints = constraints
    return hierarchy


def draw(n_points, seed, labels=None):
    """Random statements, true ones if labels are given; they never contradict each other."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 12, n_points) if labels is None else labels
    pairs = rng.integers(0, n_points, (80, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
    photo = np.full(n_points, -1)
    for number in range(15):
        taken = rng.choice(n_points, 4, replace=False)
        free = [one for one in taken if photo[one] < 0]
        _, first = np.unique(truth[free], return_index=True)
        photo[np.array(free)[first]] = number
    known = np.where(rng.random(n_points) < 0.05, truth, -1)
    return Knowledge(
        must_link=pairs[same], cannot_link=pairs[~same], apart=[photo], known_labels=known
    )


def no_break(constraints, labels):
    return constraints.count_broken(labels) == {"together": 0, "apart": 0}


@pytest.mark.parametrize("decoder", WITHOUT_EXTRA)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_constraints_hold_at_every_level_even_if_they_are_against_the_scores(points, decoder, seed):
    features, _ = points
    constraints = build_constraints(len(features), draw(len(features), seed))
    hierarchy = cluster(features, constraints, decoder)
    assert hierarchy.n_levels >= 2
    for level in range(hierarchy.n_levels):
        assert no_break(constraints, hierarchy.labels(level))


@pytest.mark.parametrize("decoder", WITHOUT_EXTRA)
def test_levels_only_merge_and_every_parent_is_in_the_same_cluster(points, decoder):
    features, _ = points
    constraints = build_constraints(len(features), draw(len(features), 4))
    hierarchy = cluster(features, constraints, decoder)
    for number in range(hierarchy.n_levels):
        level = hierarchy.levels[number]
        np.testing.assert_array_equal(level.labels[level.parent], level.labels)
        assert level.n_clusters == len(np.unique(level.labels))
        assert (np.isnan(level.linkage) == (level.parent == np.arange(level.n_nodes))).all()
    for upper in range(1, hierarchy.n_levels):
        below, above = hierarchy.labels(upper - 1), hierarchy.labels(upper)
        assert len(np.unique(np.stack([below, above]), axis=1).T) == below.max() + 1


def test_constraints_that_hold_already_change_nothing(points):
    features, _ = points
    free = cluster(features)
    final = free.labels(0)
    pairs = [np.flatnonzero(final == one)[:2] for one in range(5)]
    same = [pair for pair in pairs if len(pair) == 2]
    found = cluster(features, build_constraints(len(features), Knowledge(must_link=same)))
    for one, other in zip(free.levels, found.levels, strict=True):
        np.testing.assert_array_equal(one.parent, other.parent)
        np.testing.assert_array_equal(one.linkage, other.linkage)


def test_the_same_constraints_give_the_same_hierarchy(points):
    features, _ = points
    constraints = build_constraints(len(features), draw(len(features), 5))
    one, other = (cluster(features, constraints, "leiden") for _ in range(2))
    for level in range(one.n_levels):
        np.testing.assert_array_equal(one.labels(level), other.labels(level))


def test_true_constraints_raise_the_score(points):
    features, labels = points
    truth = build_constraints(len(features), draw(len(features), 6, labels))
    before = bcubed_f(labels, cluster(features).labels())
    assert bcubed_f(labels, cluster(features, truth).labels()) > before


def test_a_must_link_brings_its_whole_clusters_together(points):
    """It informs: what surrounds both points follows."""
    features, _ = points
    free = cluster(features)
    final, peaks = free.labels(), free.peaks()
    largest = np.argsort(-free.sizes())[:2]
    pair = peaks[largest]
    constraints = build_constraints(len(features), Knowledge(must_link=[pair]))
    found = cluster(features, constraints).labels()
    members = np.isin(final, largest)
    assert (found[members] == found[pair[0]]).mean() > 0.9


def test_cuts_of_the_merge_tree_keep_the_constraints(points):
    features, _ = points
    constraints = build_constraints(len(features), draw(len(features), 7))
    hierarchy = cluster(features, constraints, "leiden")
    for p in (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, 0.0):
        assert no_break(constraints, hierarchy.cut(p=p))
    fewest, most = hierarchy.tree.allowed
    assert most == constraints.n_components
    for n_clusters in (fewest, (fewest + most) // 2, most):
        found = hierarchy.cut(n_clusters=n_clusters)
        assert found.max() + 1 == n_clusters
        assert no_break(constraints, found)
    for impossible in (fewest - 1, most + 1):
        with pytest.raises(SettingError, match="would break what is known"):
            hierarchy.cut(n_clusters=impossible)


def test_a_saved_hierarchy_keeps_its_constraints(points, tmp_path):
    features, _ = points
    constraints = build_constraints(len(features), draw(len(features), 8))
    hierarchy = cluster(features, constraints)
    loaded = Hierarchy.load(hierarchy.save(tmp_path / "run"))
    assert loaded.constraints.digest() == constraints.digest()
    assert Hierarchy.load(cluster(features).save(tmp_path / "free")).constraints is None
