"""Data of the wide suite: training sets, and the test sets that belong to each.

A source is one training set with one or more test files. A test set is a whole test file, or
several draws from one: sets of few points, albums, single points. A method is tuned and fitted once
for each source, and then clusters every test set of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.albums import MOST_OF_OTHERS, SHARES, draw_album
from benchmarks.datasets import FACE_LIKE, WIDE
from benchmarks.rows import find_data
from benchmarks.small_sets import SIZES, draw_small_set
from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.pair import Pair, prepare_pair
from hilander.comparison.protocol import make_graph
from hilander.comparison.rows import digest_arrays
from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.io.files import read_embeddings
from hilander.synthetic.face_like import make_face_like

# Share of the identities of each face-like preset. All sets have about 10,000 to 13,000 points.
TRAIN_SCALES = {"trillionpairs": 0.015, "inat-train": 0.03}
TEST_SCALES = {
    "hannah": 0.06, "imdb": 0.01, "imdb-same": 0.02, "inat": 0.09, "inat-different": 0.2,
}  # fmt: skip
FEW_POINTS = (100, 1000)
ALBUM_IDENTITIES = 2  # largest identities of a file; each is the dominant one of some albums
SINGLES = ("omniglot", "faces")  # pairs whose test file has many identities
PAIRS, GENERATED, FEW, ALBUMS, SINGLE = "pairs", "face-like", "few", "albums", "singles"
GROUPS = {
    PAIRS: "Shared pairs",
    GENERATED: "Face-like sets",
    FEW: "Few points",
    ALBUMS: "Albums",
    SINGLE: "Single points",
}

Draws = list[IntArray]


@dataclass(frozen=True)
class TestSet:
    """One test set of the suite.

    Parameters
    ----------
    name, group : str
    source : str
        Name of its training set: a shared pair, or a preset of `TRAIN_SCALES`.
    part : str
        Test file that it is drawn from: a shared pair, or a preset of `TEST_SCALES`.
    draw : callable (labels) -> list of row numbers
        The sets whose mean score is the score.
    """

    __test__ = False  # not a class of tests, whatever pytest makes of its name

    name: str
    group: str
    source: str
    part: str
    draw: Callable[[IntArray], Draws]


def draw_all(labels: IntArray) -> Draws:
    """All points, as one set."""
    return [np.arange(len(labels))]


def draw_few(labels: IntArray, n_points: int) -> Draws:
    """Sets of `n_points` points: one of each kind of sizes that is possible, and random points."""
    drawn = [
        draw_small_set(labels, sizes, n_points, np.random.default_rng([n_points, 0, 31]))
        for sizes in SIZES
    ]
    random = np.random.default_rng([n_points, 1, 31]).permutation(len(labels))[:n_points]
    return [rows for rows in (*drawn, random) if len(rows) == n_points]


def draw_albums(labels: IntArray) -> Draws:
    """Albums of the largest identities, one for each share and number of points of the others."""
    identities, size = np.unique(labels, return_counts=True)
    large = identities[np.argsort(-size, kind="stable")[:ALBUM_IDENTITIES]]
    return [
        draw_album(labels, one, share, most, np.random.default_rng([number, most, 37]))
        for number, one in enumerate(large)
        for share in SHARES
        for most in MOST_OF_OTHERS
    ]


def draw_singles(labels: IntArray) -> Draws:
    """One random point of each identity, as one set."""
    order = np.random.default_rng(41).permutation(len(labels))
    return [order[np.unique(labels[order], return_index=True)[1]]]


def _draw_few_of(n_points: int) -> Callable[[IntArray], Draws]:
    return lambda labels: draw_few(labels, n_points)


def list_sets() -> dict[str, TestSet]:
    """All test sets by name, in the order of the page."""
    sets = [TestSet(name, PAIRS, name, name, draw_all) for name in WIDE]
    sets += [
        TestSet(name, GENERATED, train, name, draw_all) for name, (train, _) in FACE_LIKE.items()
    ]
    sets += [
        TestSet(f"{name}/{n_points}", FEW, name, name, _draw_few_of(n_points))
        for name in WIDE
        for n_points in FEW_POINTS
    ]
    sets += [TestSet(f"{name}/albums", ALBUMS, name, name, draw_albums) for name in WIDE]
    sets += [TestSet(f"{name}/singles", SINGLE, name, name, draw_singles) for name in SINGLES]
    return {one.name: one for one in sets}


SETS = list_sets()


def choose_sets(names: Sequence[str] | None) -> list[TestSet]:
    """Test sets by their names or the names of groups, in the order of the page; all for None."""
    if not names:
        return list(SETS.values())
    for name in names:
        if name not in SETS and name not in GROUPS:
            raise SettingError(
                f"set {name!r} is not known; use {', '.join(SETS)}, or a group: {', '.join(GROUPS)}"
            )
    return [one for one in SETS.values() if one.name in names or one.group in names]


@dataclass(frozen=True, eq=False)
class Part:
    """One test file of a source.

    Parameters
    ----------
    raw : ndarray of shape (n_points, dim)
        As in the file, for methods that use no training set.
    pair : Pair
        The training set and this file, prepared by the training set.
    """

    raw: Any
    pair: Pair


@dataclass(frozen=True, eq=False)
class Drawn:
    """A test set with its points.

    Parameters
    ----------
    spec : TestSet
    part : Part
    draws : list of ndarray
        Row numbers of each draw.
    """

    spec: TestSet
    part: Part
    draws: Draws

    @property
    def digest(self) -> str:
        """Digest of the training set, the test file and the draws."""
        file = np.frombuffer(self.part.pair.digest.encode(), dtype=np.uint8)
        return digest_arrays(file, *(rows.astype(np.int64) for rows in self.draws))

    @property
    def truth(self) -> list[IntArray]:
        """Identities of the points of each draw."""
        return [self.part.pair.test_labels[rows] for rows in self.draws]


def find_missing(source: str) -> list[Path]:
    """Files of a source that are not on this machine; none for a generated source."""
    if source not in WIDE:
        return []
    files = [find_data() / file for file in WIDE[source]]
    return [file for file in files if not file.is_file()]


def load_sets(source: str, sets: Sequence[TestSet]) -> list[Drawn]:
    """Load a source and draw its test sets."""
    if source in WIDE:
        train, test = (_read(find_data() / file) for file in WIDE[source])
        files = {source: test}
    else:
        train = make_face_like(source, scale=TRAIN_SCALES[source], seed=1)
        files = {
            name: make_face_like(FACE_LIKE[name][1], scale=TEST_SCALES[name], seed=2)
            for name in dict.fromkeys(one.part for one in sets)
        }
    parts = {name: Part(file[0], prepare_pair(name, train, file)) for name, file in files.items()}
    return [draw_set(one, parts[one.part]) for one in sets]


def draw_set(spec: TestSet, part: Part) -> Drawn:
    """Draw a test set from its file."""
    return Drawn(spec, part, spec.draw(part.pair.test_labels))


def _read(path: Path) -> tuple[Any, Any]:
    file = read_embeddings(path)
    return file.features, file.labels


@dataclass(frozen=True, eq=False)
class Points:
    """The points of one draw, without their identities.

    Parameters
    ----------
    raw, prepared : ndarray of shape (n_points, dim)
    graph : KnnGraph of the prepared points
    """

    raw: Any
    prepared: FloatArray
    graph: KnnGraph


@dataclass(frozen=True)
class StoredSource:
    """A training set and the draws of its test sets on disk, for the processes of the methods.

    Test labels are not stored.
    """

    folder: Path

    @classmethod
    def write(cls, sets: Sequence[Drawn], folder: Path) -> StoredSource:
        """Build all graphs, once for all methods, and write everything."""
        stored = cls(folder)
        pair = sets[0].part.pair
        np.savez(folder / "train.npz", features=pair.train, labels=pair.train_labels)
        make_graph(pair.train).save(folder / "train-graph.npz")
        for one in sets:
            for number, rows in enumerate(one.draws):
                points, graph = stored._files(one.spec.name, number)
                prepared = np.ascontiguousarray(one.part.pair.test[rows])
                np.savez(points, raw=one.part.raw[rows], prepared=prepared)
                make_graph(prepared).save(graph)
        return stored

    def read_train(self) -> tuple[FloatArray, IntArray, KnnGraph]:
        """Training features, labels and graph."""
        with np.load(self.folder / "train.npz") as arrays:
            features, labels = arrays["features"], arrays["labels"]
        return features, labels, KnnGraph.load(self.folder / "train-graph.npz")

    def read_points(self, name: str, number: int) -> Points:
        """The points of one draw of a test set."""
        points, graph = self._files(name, number)
        with np.load(points) as arrays:
            return Points(arrays["raw"], arrays["prepared"], KnnGraph.load(graph))

    def _files(self, name: str, number: int) -> tuple[Path, Path]:
        stem = f"{name.replace('/', '-')}-{number}"
        return self.folder / f"points-{stem}.npz", self.folder / f"graph-{stem}.npz"
