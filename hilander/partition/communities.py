"""Communities of a weighted graph: Leiden by networkit, Infomap by its own library.

networkit comes with the package. Infomap is under the GPL and optional:
``pip install 'hilander[infomap]'``.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.data.arrays import FloatArray, IntArray
from hilander.errors import SettingError

# How often Leiden goes over the whole graph; after some passes nothing changes any more.
_PASSES = 5
# Module, what pip installs it by, and name of each method.
LIBRARIES = {
    "leiden": ("networkit", "networkit", "Leiden"),
    "infomap": ("infomap", "'hilander[infomap]'", "Infomap"),
}


@dataclass(frozen=True, eq=False)
class WeightedEdges:
    """Undirected edges, once each.

    Parameters
    ----------
    n_nodes : int
    low, high : ndarray of shape (n_edges,)
        Ends, low < high.
    weight : ndarray of shape (n_edges,), float64
        Above 0.
    """

    n_nodes: int
    low: IntArray
    high: IntArray
    weight: npt.NDArray[np.float64]

    @classmethod
    def of_matrix(cls, neighbours: IntArray, weights: FloatArray) -> WeightedEdges:
        """Take the edges with a positive weight; one that is there both ways has the larger.

        Parameters
        ----------
        neighbours, weights : ndarray of shape (n_nodes, k)
        """
        n_nodes = len(neighbours)
        rows, columns = np.nonzero(weights > 0)
        ends = neighbours[rows, columns]
        low, high = np.minimum(rows, ends), np.maximum(rows, ends)
        pairs, inverse = np.unique(low * n_nodes + high, return_inverse=True)
        weight = np.zeros(len(pairs))
        np.maximum.at(weight, inverse, weights[rows, columns].astype(np.float64))
        return cls(n_nodes, pairs // n_nodes, pairs % n_nodes, weight)

    @property
    def strength(self) -> npt.NDArray[np.float64]:
        """Weight of all edges of each node, shape (n_nodes,)."""
        strength: npt.NDArray[np.float64] = np.zeros(self.n_nodes)
        for ends in (self.low, self.high):
            strength += np.bincount(ends, self.weight, self.n_nodes)
        return strength


def find_by_leiden(edges: WeightedEdges, resolution: float, seed: int = 0) -> IntArray:
    """Communities of highest modularity.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes
    resolution : float
        Above 1 favours smaller communities than modularity does by itself.
    seed : int
        Same seed, same communities.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), a node without an edge alone
    """
    networkit = require(*LIBRARIES["leiden"])
    if not len(edges.low):
        return np.arange(edges.n_nodes)
    threads = networkit.getMaxNumberOfThreads()
    networkit.setNumberOfThreads(1)  # with more, the order of the moves is left to chance
    try:
        networkit.setSeed(seed, True)
        graph = networkit.GraphFromCoo(
            (edges.weight, (edges.low, edges.high)), n=edges.n_nodes, weighted=True, directed=False
        )
        leiden = networkit.community.ParallelLeiden(
            graph, randomize=True, iterations=_PASSES, gamma=float(resolution)
        )
        leiden.run()
        return np.asarray(leiden.getPartition().getVector(), dtype=np.int64)
    finally:
        networkit.setNumberOfThreads(threads)


def find_by_infomap(edges: WeightedEdges, seed: int = 0) -> IntArray:
    """Modules of the two-level map equation: where a random walker stays for long.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes
    seed : int
        Same seed, same modules.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), a node without an edge alone
    """
    infomap = require(*LIBRARIES["infomap"])
    # Modules are numbered from 1 on, so negative numbers are free for nodes that have no edge.
    labels = -1 - np.arange(edges.n_nodes)
    if len(edges.low):
        network = infomap.Infomap(
            two_level=True, silent=True, seed=seed + 1, num_trials=1, directed=False
        )
        ends = zip(edges.low.tolist(), edges.high.tolist(), edges.weight.tolist(), strict=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of accessors that will move in Infomap 3
            network.add_links(ends)
            network.run()
            for node in network.nodes:
                labels[node.node_id] = node.module_id
    numbered: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbered


def require(module: str, package: str, what: str) -> Any:
    """Import the library of a method, or say what installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SettingError(
            f"{what} needs {module}, which cannot be imported ({error}); pip install {package}"
        ) from error
