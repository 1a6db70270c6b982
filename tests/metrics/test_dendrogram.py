from itertools import combinations

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.metrics import dendrogram_purity


def purity_pair_by_pair(labels, children):
    """The definition: the purity of the smallest subtree that holds each pair."""
    members = [{point} for point in range(len(labels))]
    for left, right in children:
        members.append(members[left] | members[right])
    found = []
    for one, two in combinations(range(len(labels)), 2):
        if labels[one] != labels[two]:
            continue
        holding = [part for part in members if one in part and two in part]
        part = min(holding, key=len, default=set(range(len(labels))))
        found.append(np.mean([labels[point] == labels[one] for point in part]))
    return np.mean(found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_purity_is_that_of_the_definition(seed, share):
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=25)
    present, children = list(range(25)), []
    for merge in range(int(share * 24)):
        left, right = rng.choice(len(present), 2, replace=False)
        children.append((present[left], present[right]))
        present = [one for at, one in enumerate(present) if at not in (left, right)] + [25 + merge]
    assert dendrogram_purity(labels, np.array(children)) == pytest.approx(
        purity_pair_by_pair(labels, children)
    )


def test_purity_is_one_where_every_identity_is_a_subtree():
    children = np.array([[0, 1], [2, 3], [4, 5]])
    assert dendrogram_purity(["a", "a", "b", "b"], children) == 1.0
    assert dendrogram_purity(["a", "b", "a", "b"], children) < 1.0


def test_single_points_have_no_pair_and_purity_one():
    assert dendrogram_purity([0, 1, 2], np.array([[0, 1]])) == 1.0


@pytest.mark.parametrize("children", [np.array([[0, 1], [0, 2]]), np.zeros((3, 2)), np.zeros(3)])
def test_what_is_no_tree_is_refused(children):
    with pytest.raises(SettingError, match="one tree"):
        dendrogram_purity([0, 0, 1], children)
