"""Parts of a cluster, and subtrees of links."""

import numpy as np

from hilander.explorer.partition.parts import find_parts, find_subtree_rows


def test_parts_are_disjoint_and_cover_the_cluster_at_every_level(explorer):
    grouping = explorer.reviewed()
    for group in range(grouping.n_groups):
        for at in range(-1, grouping.level):
            found, parts = find_parts(grouping, group, at)
            rows = np.concatenate([part.rows for part in parts])
            assert found == at
            assert sorted(rows) == sorted(grouping.rows_of(group))
            sizes = [len(part.rows) for part in parts]
            assert sizes == sorted(sizes, reverse=True)
            if at < 0:
                continue
            # Each part but one is linked to another part.
            assert sum(part.linkage is None for part in parts) == 1
            numbers = {part.number for part in parts}
            assert all(part.joined_to in numbers for part in parts if part.linkage is not None)


def test_subtree_rows_are_those_whose_links_lead_to_the_node(explorer):
    run = explorer.run
    parent, _ = run.hierarchy.parents(1)
    below = run.nested.tables[0]
    for node in range(len(parent)):
        inside = set(find_subtree_rows(run, 1, node).tolist())
        expected = set()
        for other in range(len(parent)):
            up = other
            while up != node and parent[up] != up:
                up = parent[up]
            if up == node:
                expected |= set(np.flatnonzero(below.labels == other).tolist())
        assert inside == expected
