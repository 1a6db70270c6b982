"""Small graphs that several tests share."""

import numpy as np
import pytest
import torch

from hilander.graph.nodes import start_nodes
from hilander.hierarchy.pooling import merge_nodes
from hilander.knn.search import build_knn_graph
from hilander.linkage.paper.examples import TrainingGraph
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="session")
def small_level():
    """A graph of 60 nodes that stand for 150 points, with the identity of each node."""
    points, identity = make_identities(n_identities=10, size=15, dim=6, seed=0)
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.concatenate([np.arange(60), rng.integers(60, size=90)]))
    peaks = np.array([np.flatnonzero(labels == tree)[0] for tree in range(60)])
    nodes = merge_nodes(start_nodes(points), labels, peaks)
    return build_knn_graph(nodes.identity, 5), nodes, identity[nodes.point]


@pytest.fixture(scope="session")
def training_graphs():
    """Two level graphs of the same points."""
    points, labels = make_identities(n_identities=12, size=10, dim=8, spread=0.5, seed=1)
    nodes = start_nodes(points)
    return [
        TrainingGraph.of_level(build_knn_graph(points, k), nodes, labels, "concat") for k in (4, 7)
    ]


@pytest.fixture
def torch_threads():
    """Set the number of torch's threads; it is restored afterwards."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
