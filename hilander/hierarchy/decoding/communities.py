"""Communities of a weighted graph: Leiden by networkit, Infomap by its own library.

networkit comes with the package. Infomap is under the GPL and optional:
``pip install 'hilander[infomap]'``.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
from hilander.errors import SettingError

# Passes of Leiden over the whole graph; more change nothing.
_PASSES = 5
# Nodes of a part. A larger graph is cut between its components; such parts fit the CPU cache.
_PART = 16_384
# Passes over such a part; more change a thousandth of the nodes.
_PASSES_OVER_PART = 2
# Starts of the search in a graph of one part. It visits nodes in random order, and the best of some
# starts depends less on that order. What one start leaves to chance matters less in a large graph.
_STARTS = 4
# Relative perturbation of each weight. With equal weights, rounding can make a node prefer each of
# two communities in turn, and Leiden would not end.
_UNEQUAL = 1e-9
_ONE_AT_A_TIME = Lock()  # networkit has one seed for all threads
# Module, argument of `pip install`, and name of each method.
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
        """Take the edges of positive weight; an edge listed both ways gets the larger weight.

        Parameters
        ----------
        neighbours, weights : ndarray of shape (n_nodes, k)
        """
        n_nodes = len(neighbours)
        rows, columns = np.nonzero(weights > 0)
        ends = neighbours[rows, columns]
        low, high = np.minimum(rows, ends), np.maximum(rows, ends)
        pairs = low * n_nodes + high
        order = np.argsort(pairs)
        pairs = pairs[order]
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        weight = weights[rows, columns][order].astype(np.float64)
        weight = np.maximum.reduceat(weight, first) if len(first) else weight
        return cls(n_nodes, *np.divmod(pairs[first], n_nodes), weight)

    @property
    def strength(self) -> npt.NDArray[np.float64]:
        """Sum of the weights of each node's edges, shape (n_nodes,)."""
        strength: npt.NDArray[np.float64] = np.zeros(self.n_nodes)
        for ends in (self.low, self.high):
            strength += np.bincount(ends, self.weight, self.n_nodes)
        return strength


def find_by_leiden(edges: WeightedEdges, resolution: float, seed: int = 0) -> IntArray:
    """Communities found by Leiden, a search for the highest modularity; the best of some starts.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes
    resolution : float
        Factor of the weight that modularity expects; a higher one gives smaller communities.
    seed : int
        Same seed, same communities.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        A node without edges has a label of its own.
    """
    networkit = require(*LIBRARIES["leiden"])
    with _ONE_AT_A_TIME, _one_thread_of(networkit):
        if edges.n_nodes <= _PART:
            return _improve_often(networkit, edges, resolution, seed)
        networkit.setSeed(seed, True)
        return _improve_parts(networkit, edges, resolution)


def measure_modularity(edges: WeightedEdges, labels: IntArray, resolution: float) -> float:
    """Weight inside communities as a share of all, less `resolution` times what chance gives.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes, at least one edge
    labels : ndarray of shape (n_nodes,), ints from 0
    resolution : float
    """
    total = edges.weight.sum()
    inside = edges.weight[labels[edges.low] == labels[edges.high]].sum()
    share = np.bincount(labels, edges.strength) / (2 * total)
    return float(inside / total - resolution * (share**2).sum())


@contextmanager
def _one_thread_of(networkit: Any) -> Iterator[None]:
    """Use one thread: with more, the order of the moves is random."""
    threads = networkit.getMaxNumberOfThreads()
    networkit.setNumberOfThreads(1)
    try:
        yield
    finally:
        networkit.setNumberOfThreads(threads)


def _improve_often(networkit: Any, edges: WeightedEdges, resolution: float, seed: int) -> IntArray:
    """Communities of the highest modularity that some starts find, shape (n_nodes,)."""
    if not len(edges.low):
        return np.arange(edges.n_nodes)
    found = []
    for start in range(_STARTS):
        networkit.setSeed(seed * _STARTS + start, True)
        labels = _improve(networkit, edges, resolution, _PASSES)
        found.append((measure_modularity(edges, labels, resolution), labels))
    return max(found, key=lambda one: one[0])[1]


def _improve(networkit: Any, edges: WeightedEdges, resolution: float, passes: int) -> IntArray:
    """Communities of one graph, shape (n_nodes,)."""
    if not len(edges.low):
        return np.arange(edges.n_nodes)
    unequal = edges.weight * (1 + _UNEQUAL * np.random.default_rng(0).random(len(edges.weight)))
    graph = networkit.GraphFromCoo(
        (unequal, (edges.low, edges.high)), n=edges.n_nodes, weighted=True, directed=False
    )
    leiden = networkit.community.ParallelLeiden(
        graph, randomize=True, iterations=passes, gamma=float(resolution)
    )
    leiden.run()
    return np.asarray(leiden.getPartition().getVector(), dtype=np.int64)


def _improve_parts(networkit: Any, edges: WeightedEdges, resolution: float) -> IntArray:
    """Communities of a graph, found in parts that no edge joins, shape (n_nodes,).

    Modularity compares an edge with ``resolution * s_i * s_j / total``. The total of a part is
    smaller than that of the whole, so its resolution is scaled down by the same factor.
    """
    labels, total, n_found = np.empty(edges.n_nodes, dtype=np.int64), edges.weight.sum(), 0
    for nodes, part in cut_between_components(edges, _PART):
        share = part.weight.sum() / total if total else 1.0
        found = _improve(networkit, part, resolution * share, _PASSES_OVER_PART)
        labels[nodes] = found + n_found
        n_found += int(found.max()) + 1
    return labels


def cut_between_components(
    edges: WeightedEdges, size: int
) -> Iterator[tuple[IntArray, WeightedEdges]]:
    """Cut a graph into parts of whole connected components; no edge is cut.

    Parameters
    ----------
    edges : WeightedEdges
    size : int
        Approximate number of nodes of a part; a component is never cut, however large.

    Yields
    ------
    nodes : ndarray of shape (n_part,)
        Nodes of the part, rising.
    part : WeightedEdges of n_part nodes
        Its edges, with nodes numbered by their place in `nodes`.
    """
    shape = (edges.n_nodes, edges.n_nodes)
    links = coo_matrix((edges.weight, (edges.low, edges.high)), shape)
    _, component = connected_components(links, directed=False)
    sizes = np.bincount(component)
    part_of = ((np.cumsum(sizes) - sizes) // size)[component]
    n_parts = int(part_of.max()) + 1
    nodes, node_starts = sort_by_group(part_of, n_parts)
    at, edge_starts = sort_by_group(part_of[edges.low], n_parts)
    place = np.empty(edges.n_nodes, dtype=np.int64)
    for number in range(n_parts):
        some = nodes[node_starts[number] : node_starts[number + 1]]
        if not len(some):
            continue
        place[some] = np.arange(len(some))
        chosen = at[edge_starts[number] : edge_starts[number + 1]]
        ends = place[edges.low[chosen]], place[edges.high[chosen]]
        yield some, WeightedEdges(len(some), *ends, edges.weight[chosen])


def find_by_infomap(edges: WeightedEdges, seed: int = 0) -> IntArray:
    """Modules of the two-level map equation.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes
    seed : int
        Same seed, same modules.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        A node without edges has a label of its own.
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
            warnings.simplefilter("ignore")  # deprecations of Infomap 3
            network.add_links(ends)
            network.run()
            for node in network.nodes:
                labels[node.node_id] = node.module_id
    numbered: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbered


def require(module: str, package: str, what: str) -> Any:
    """Import the library of a decoder; the error gives the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise SettingError(
            f"{what} needs {module}, which cannot be imported ({error}); pip install {package}"
        ) from error
