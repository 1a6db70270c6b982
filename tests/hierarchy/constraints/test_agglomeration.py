"""Greedy merges with a veto."""

import numpy as np

from hilander.hierarchy.constraints.agglomeration import Agglomeration
from hilander.hierarchy.constraints.building import Knowledge, build_constraints


def merge(n_nodes, edges, **knowledge):
    growing = Agglomeration(build_constraints(n_nodes, Knowledge(**knowledge)), np.ones(n_nodes))
    left, right, total = (np.array(one) for one in zip(*edges, strict=True))
    growing.add_edges(left, right, total, np.ones(len(left)))
    merges = list(growing.merge())
    return np.unique(growing.labels(), return_inverse=True)[1].tolist(), merges


def test_everything_that_edges_join_merges_without_constraints():
    labels, merges = merge(4, [(0, 1, 0.9), (1, 2, 0.1), (2, 3, 0.5)])
    assert labels == [labels[0]] * 4
    assert len(merges) == 3


def test_the_weakest_link_between_two_that_are_apart_is_cut():
    chain = [(0, 1, 0.9), (1, 2, 0.8), (2, 3, 0.1), (3, 4, 0.7)]
    labels, _ = merge(5, chain, cannot_link=[(0, 4)])
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4]


def test_a_veto_holds_for_all_that_merged():
    triangle = [(0, 1, 0.9), (1, 2, 0.8), (0, 2, 0.7)]
    labels, _ = merge(3, triangle, cannot_link=[(0, 2)])
    assert labels[0] == labels[1] != labels[2]


def test_two_known_labels_never_merge():
    labels, _ = merge(3, [(0, 1, 0.9), (1, 2, 0.8)], known_labels=[0, -1, 1])
    assert labels[0] == labels[1] != labels[2]


def test_parallel_edges_add_up():
    edges = [(0, 1, 0.3), (1, 0, 0.3), (1, 2, 0.5)]
    labels, merges = merge(3, edges, cannot_link=[(0, 2)])
    assert labels[0] == labels[1] != labels[2]
    assert (merges[0].total, merges[0].count) == (0.6, 2)


def test_the_order_of_edges_does_not_matter():
    rng = np.random.default_rng(0)
    ends = np.stack(np.triu_indices(30, 1), axis=1)
    ends = ends[rng.random(len(ends)) < 0.3]
    edges = [(a, b, float(w)) for (a, b), w in zip(ends, rng.random(len(ends)), strict=True)]
    apart = [rng.integers(0, 6, 30)]
    first, _ = merge(30, edges, apart=apart)
    second, _ = merge(30, [edges[at] for at in rng.permutation(len(edges))], apart=apart)
    together = np.equal.outer(first, first)
    np.testing.assert_array_equal(together, np.equal.outer(second, second))
    groups = np.equal.outer(apart[0], apart[0]) & ~np.eye(30, dtype=bool)
    assert not (together & groups).any()
