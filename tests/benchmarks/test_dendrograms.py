import numpy as np
import pytest

from benchmarks import dendrograms
from benchmarks.rows import put_block, read_rows
from hilander.metrics import dendrogram_purity
from hilander.synthetic.identities import make_identities


def test_nested_partitions_become_merges_whose_subtrees_are_their_clusters():
    levels = [np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 0, 1, 1]), np.zeros(6, dtype=int)]
    children = dendrograms.chain_levels(levels)
    members = [{point} for point in range(6)]
    for left, right in children.tolist():
        members.append(members[left] | members[right])
    assert len(children) == 5
    for labels in levels:
        for cluster in np.unique(labels):
            assert set(np.flatnonzero(labels == cluster).tolist()) in members


@pytest.mark.parametrize("method", list(dendrograms.METHODS))
def test_every_tree_of_easy_identities_is_nearly_pure(method):
    X, y = make_identities(n_identities=12, size=8, dim=24, spread=0.3, seed=0)
    children = dendrograms.METHODS[method](X, X)
    assert children.shape[1] == 2
    assert dendrogram_purity(y, children) > 0.95


def test_the_table_of_the_page_is_drawn_from_its_rows():
    text = dendrograms.PAGE.read_text(encoding="utf-8")
    table = dendrograms.format_rows(read_rows(dendrograms.ROWS))
    assert put_block(text, dendrograms.MARKS, table) == text
    assert table.count("**") >= 2
