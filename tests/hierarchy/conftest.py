"""A hierarchy of real levels, made without a network."""

import pytest

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.synthetic.identities import make_identities
from tests.scorers import score_by_affinity


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
