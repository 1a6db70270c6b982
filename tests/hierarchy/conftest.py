"""A hierarchy of real levels, made without a network."""

import numpy as np
import pytest

from hilander.graph.scores import EdgeScores, edge_density
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.synthetic.identities import make_identities


def score_by_affinity(graph, nodes):
    """A scorer that knows nothing: the more alike, the more probable."""
    linkage = np.clip(graph.affinity, 0, 1).astype(np.float32)
    return EdgeScores(linkage, edge_density(graph.affinity, linkage))


@pytest.fixture(scope="session")
def affinity_scorer():
    return score_by_affinity


@pytest.fixture(scope="session")
def hierarchy():
    """Several levels, the last of several clusters."""
    features, _ = make_identities(n_identities=20, size=15, dim=16, spread=0.8, seed=3)
    found = Hierarchy.of_steps(walk_levels(features, score_by_affinity, Rules(k=2, p_tau=0.3)))
    assert found.n_levels >= 3
    assert found.n_clusters(-1) > 1
    return found
