"""The k-NN graph as a value: two arrays of shape (n_nodes, k)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import FileFormatError, GraphError, MissingFileError
from hilander.graph.search_report import SearchReport
from hilander.io.writing import write_atomically

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_COSINE_SLACK = 1e-4  # the cosine of float32 unit vectors may exceed 1 by rounding
_CACHED_NUMBERS = 1_000_000  # float32 numbers that fit the cache of a processor


@dataclass(frozen=True, eq=False)
class KnnGraph:
    """The k nearest neighbours of every node, by cosine.

    ``k`` is the number of neighbours; the node itself is not counted and never its own neighbour.

    Parameters
    ----------
    neighbours : ndarray of shape (n_nodes, k), int64
        Row ``i`` has the neighbours of node ``i``, most similar first.
    affinity : ndarray of shape (n_nodes, k), float32
        Their cosine similarity to node ``i``, in [-1, 1].
    search : SearchReport, optional
        How the neighbours were found; None if that is not known.

    Raises
    ------
    GraphError
        Shapes differ, an index is out of range, a node is its own neighbour, a neighbour is listed
        twice, or an affinity is not a cosine.
    """

    neighbours: IntArray
    affinity: FloatArray
    search: SearchReport | None = None

    def __post_init__(self) -> None:
        # Read-only memory, such as a mapped file, is copied: torch cannot use it.
        neighbours = as_index_array(self.neighbours)
        affinity = np.require(self.affinity, np.float32, ("C", "W"))
        _check_shapes(neighbours, affinity)
        _check_neighbours(neighbours)
        _check_affinity(affinity)
        object.__setattr__(self, "neighbours", neighbours)
        object.__setattr__(self, "affinity", affinity)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.neighbours.shape[0])

    @property
    def k(self) -> int:
        """Number of neighbours of each node, the node itself not counted."""
        return int(self.neighbours.shape[1])

    def to_csr(self) -> csr_matrix:
        """The graph as a scipy CSR matrix of shape (n_nodes, n_nodes), entry (i, j) = a_ij."""
        from scipy.sparse import csr_matrix

        row_starts = np.arange(0, self.neighbours.size + 1, self.k)
        shape = (self.n_nodes, self.n_nodes)
        matrix = csr_matrix((self.affinity.ravel(), self.neighbours.ravel(), row_starts), shape)
        return matrix.sorted_indices()

    def save(self, path: str | Path) -> Path:
        """Write the graph to one `.npz` file and return its path."""
        target = Path(path)
        with write_atomically(target) as temporary, open(temporary, "wb") as stream:
            search = "" if self.search is None else self.search.to_json()
            np.savez(stream, neighbours=self.neighbours, affinity=self.affinity, search=search)
        return target

    @classmethod
    def load(cls, path: str | Path) -> KnnGraph:
        """Read a graph that `save` wrote."""
        source = Path(path)
        if source.is_file() and source.suffix.lower() == ".npy":
            raise FileFormatError(
                f"{source} holds one array, expected .npz with the arrays neighbours and affinity; "
                "give a file that KnnGraph.save wrote, or graph.npz of a run"
            )
        try:
            # Opened here: numpy leaves the file of a damaged archive open.
            with open(source, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                neighbours, affinity = arrays["neighbours"], arrays["affinity"]
                text = str(arrays["search"]) if "search" in arrays else ""
                search = SearchReport.from_json(text) if text else None
        except FileNotFoundError:
            missing = f"{source} does not exist; give a file that save wrote"
            raise MissingFileError(missing) from None
        except Exception as error:
            message = f"{source} is not a k-NN graph ({error}); give a file that save wrote"
            raise FileFormatError(message) from error
        return cls(neighbours, affinity, search)


def edge_blocks(n_nodes: int, numbers_per_node: int) -> Iterator[slice]:
    """Blocks of nodes whose neighbours' features fit the cache of a processor.

    With larger blocks, gathering the features takes many times as long as the arithmetic.

    Parameters
    ----------
    n_nodes : int
    numbers_per_node : int
        Numbers gathered for each node: k times the width of a feature.
    """
    size = max(1, _CACHED_NUMBERS // numbers_per_node)
    for start in range(0, n_nodes, size):
        yield slice(start, min(start + size, n_nodes))


def as_index_array(neighbours: npt.ArrayLike) -> IntArray:
    """Neighbour indices as int64; other types than integers are refused."""
    indices = np.asarray(neighbours)
    if indices.dtype.kind not in "iu":
        raise GraphError(f"neighbours must be integers, got {indices.dtype}; pass row indices")
    return np.require(indices, np.int64, ("C", "W"))


def _check_shapes(neighbours: IntArray, affinity: FloatArray) -> None:
    if neighbours.ndim != 2 or neighbours.shape != affinity.shape or 0 in neighbours.shape:
        raise GraphError(
            "neighbours and affinity must share one shape (n_nodes, k), got "
            f"{neighbours.shape} and {affinity.shape}"
        )


def _check_neighbours(neighbours: IntArray) -> None:
    n_nodes, k = neighbours.shape
    low, high = int(neighbours.min()), int(neighbours.max())
    if low < 0 or high >= n_nodes:
        raise GraphError(
            f"neighbours must lie in [0, {n_nodes - 1}], got {low if low < 0 else high}; "
            "a graph over other points, or -1 for a missing neighbour, cannot be used"
        )
    for rows in row_blocks(n_nodes, k):
        _check_repeats(neighbours[rows], rows.start)


def _check_repeats(neighbours: IntArray, first: int) -> None:
    """Refuse rows, numbered from `first` on, that list themselves or a neighbour twice."""
    itself = np.arange(first, first + len(neighbours))[:, None]
    own = np.flatnonzero((neighbours == itself).any(axis=1))
    if len(own):
        raise GraphError(
            f"node {first + own[0]} is listed as its own neighbour; drop the self column "
            "(k counts neighbours, not the node)"
        )
    ordered = np.sort(neighbours, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise GraphError(f"node {first + twice[0]} lists a neighbour twice; each may appear once")


def _check_affinity(affinity: FloatArray) -> None:
    if not np.isfinite(affinity).all():
        row = int(np.flatnonzero(~np.isfinite(affinity).all(axis=1))[0])
        raise GraphError(f"affinity of node {row} holds NaN or infinity; expected cosines")
    extreme = float(np.abs(affinity).max())
    if extreme > 1 + _COSINE_SLACK:
        raise GraphError(
            f"affinity must be a cosine in [-1, 1], got {extreme:g} in size; "
            "pass similarities, not distances, of L2-normalised embeddings"
        )
