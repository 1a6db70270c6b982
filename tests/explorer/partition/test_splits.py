"""Links of all parts and pairs, against counts over every edge."""

import numpy as np
import pytest

from hilander.explorer.partition.joins import ReverseEdges, find_joins, update_joins
from hilander.explorer.partition.splits import find_splits
from hilander.explorer.run.leaf_order import build_leaf_order
from hilander.explorer.run.run_folder import open_run


@pytest.fixture(scope="module")
def run(whole_run):
    return open_run(whole_run)


@pytest.fixture(scope="module")
def leaves(run):
    return build_leaf_order(run.merge_tree)


def cut_by_hand(graph, one, other):
    """Summed linkage and number of the edges between two sets of points, in both directions."""
    total = count = 0.0
    for rows, others in ((one, other), (other, one)):
        leads = np.isin(graph.neighbours[rows], others)
        total += float(np.asarray(graph.linkage[rows])[leads].sum())
        count += int(leads.sum())
    return total, count


def test_every_node_is_a_range_of_the_leaf_order(run, leaves):
    tree = run.merge_tree
    assert sorted(leaves.order.tolist()) == list(range(run.n_points))
    np.testing.assert_array_equal(leaves.order[leaves.place], np.arange(run.n_points))
    for merge in range(0, tree.n_merges, 7):
        left, right = (set(leaves.rows_of(child).tolist()) for child in tree.children[merge])
        node = tree.n_points + merge
        assert set(leaves.rows_of(node).tolist()) == left | right
        assert not left & right


@pytest.mark.parametrize("kind", ["run", "random", "one group"])
def test_the_links_of_parts_are_those_of_their_edges(run, leaves, kind):
    rng = np.random.default_rng(1)
    labels = run.hierarchy.labels(-1)
    rows = None
    if kind == "random":
        labels = rng.integers(0, 9, run.n_points)
    elif kind == "one group":
        rows = np.flatnonzero(labels == np.bincount(labels).argmax())
    splits = find_splits(leaves, run.graph, labels, rows)
    assert set(splits.group.tolist()) <= set(labels[rows if rows is not None else ...].tolist())
    for one in rng.choice(len(splits.node), 60, replace=False).tolist():
        part = leaves.rows_of(splits.node[one])
        part = part[labels[part] == splits.group[one]]
        group = np.flatnonzero(labels == splits.group[one])
        rest = np.setdiff1d(group, part)
        assert (splits.size[one], splits.rest[one]) == (len(part), len(rest))
        assert 0 < len(part) < len(group)
        np.testing.assert_allclose(
            (splits.total[one], splits.count[one]), cut_by_hand(run.graph, part, rest), atol=1e-4
        )
        inside = np.isin(run.graph.neighbours[group], group).sum()
        assert splits.count_inside[one] == inside
        places = leaves.place[part]
        assert (splits.low[one], splits.high[one]) == (places.min(), places.max() + 1)


def test_the_parts_of_a_group_are_nested_or_disjoint(run, leaves):
    labels = np.random.default_rng(2).integers(0, 5, run.n_points)
    splits = find_splits(leaves, run.graph, labels)
    for group in range(5):
        mine = np.flatnonzero(splits.group == group)
        low, high = splits.low[mine], splits.high[mine]
        overlap = (low[:, None] < high) & (low < high[:, None])
        nested = (low[:, None] <= low) & (high <= high[:, None])
        assert (nested | nested.T | ~overlap).all()


def test_the_links_of_pairs_are_those_of_their_edges(run):
    labels = run.hierarchy.labels(-1)
    n_groups = int(labels.max()) + 1
    joins = find_joins(run.graph, labels, n_groups)
    assert (joins.a < joins.b).all()
    for one in range(0, len(joins.a), 3):
        sides = (np.flatnonzero(labels == group) for group in (joins.a[one], joins.b[one]))
        np.testing.assert_allclose(
            (joins.total[one], joins.count[one]), cut_by_hand(run.graph, *sides), atol=1e-4
        )


def test_pairs_that_are_updated_are_those_that_are_found_anew(run):
    labels = run.hierarchy.labels(-1).copy()
    n_groups = int(labels.max()) + 3
    base = find_joins(run.graph, labels, n_groups)
    before = labels.copy()
    labels[labels == labels[7]] = labels[200]
    labels[[3, 40, 41]] = n_groups - 2
    touched = np.unique(np.concatenate((labels[labels != before], before[labels != before])))
    changed = {int(group): np.flatnonzero(labels == group) for group in touched}
    updated = update_joins(
        base, run.graph, ReverseEdges.of_graph(run.graph), labels, changed, n_groups
    )
    anew = find_joins(run.graph, labels, n_groups)
    for name in ("a", "b", "count"):
        np.testing.assert_array_equal(getattr(updated, name), getattr(anew, name))
    np.testing.assert_allclose(updated.total, anew.total, rtol=1e-5)
