"""A labelled training set and a labelled test set, prepared once for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.protocol import SHARED_K, make_graph
from hilander.comparison.rows import digest_arrays
from hilander.embeddings.labels import encode_labels
from hilander.embeddings.preparation import learn_preparation
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, LabelError
from hilander.graph.knn_graph import KnnGraph
from hilander.io.files import read_embeddings

_TRAIN, _TRUTH = "train.npz", "truth.npy"
_TEST, _TRAIN_GRAPH, _TEST_GRAPH = "test.npy", "train-graph.npz", "test-graph.npz"


@dataclass(frozen=True, eq=False)
class Pair:
    """A training set and a test set, each with its identities. Test labels are only for scoring.

    Parameters
    ----------
    name : str
    train, test : ndarray of shape (n_train, dim) and (n_test, dim), float32
        Prepared: of unit length, and centred by the training mean if it is in a narrow cone.
    train_labels, test_labels : ndarray, int64
    digest : str
        Digest of the arrays before preparation.
    preparation : str
        Description of what was done to the embeddings.
    """

    name: str
    train: FloatArray
    train_labels: IntArray
    test: FloatArray
    test_labels: IntArray
    digest: str
    preparation: str


def prepare_pair(name: str, train: tuple[Any, Any], test: tuple[Any, Any]) -> Pair:
    """Check and prepare a pair.

    Parameters
    ----------
    name : str
    train, test : pair of (features, labels)

    Returns
    -------
    pair : Pair
    """
    points, others = as_embeddings(train[0], min_rows=3), as_embeddings(test[0], min_rows=3)
    if points.shape[1] != others.shape[1]:
        raise EmbeddingError(
            f"the training set has {points.shape[1]} features, the test set {others.shape[1]}; "
            "give embeddings of one embedder"
        )
    for side, labels in (("training", train[1]), ("test", test[1])):
        if labels is None:
            raise LabelError(
                f"the {side} set has no labels, expected one for each embedding; a comparison "
                "tunes on the first and scores on the second"
            )
    labels = encode_labels(train[1], len(points))[0]
    preparation = learn_preparation(points, "auto", labels=labels)
    truth = encode_labels(test[1], len(others))[0]
    return Pair(
        name,
        preparation.apply(points),
        labels,
        preparation.apply(others),
        truth,
        digest_arrays(points, labels, others, truth),
        preparation.describe(),
    )


def read_pair(train: Path, test: Path) -> Pair:
    """Read a pair from two files of embeddings with labels."""
    first, second = read_embeddings(train), read_embeddings(test)
    for file in (first, second):
        if file.labels is None:
            raise LabelError(
                f"{file.source} holds no labels, expected one for each embedding; "
                "add an array or column named labels"
            )
    name = f"{Path(train).stem} -> {Path(test).stem}"
    return prepare_pair(name, (first.features, first.labels), (second.features, second.labels))


@dataclass(frozen=True)
class StoredPair:
    """A pair and its two graphs on disk, for the processes of the methods.

    The test labels have a file of their own, which only the scoring process opens.

    Parameters
    ----------
    folder : Path
    """

    folder: Path

    @classmethod
    def write(cls, pair: Pair, folder: Path, k: int = SHARED_K) -> StoredPair:
        """Build both graphs, once for all methods, and write the pair and the graphs."""
        np.savez(folder / _TRAIN, features=pair.train, labels=pair.train_labels)
        np.save(folder / _TEST, pair.test)
        np.save(folder / _TRUTH, pair.test_labels)
        make_graph(pair.train, k).save(folder / _TRAIN_GRAPH)
        make_graph(pair.test, k).save(folder / _TEST_GRAPH)
        return cls(folder)

    def read_train(self) -> tuple[FloatArray, IntArray, KnnGraph]:
        """Training features, labels and graph."""
        with np.load(self.folder / _TRAIN) as arrays:
            features, labels = arrays["features"], arrays["labels"]
        return features, labels, KnnGraph.load(self.folder / _TRAIN_GRAPH)

    def read_test(self) -> tuple[FloatArray, KnnGraph]:
        """Test features and graph, without labels."""
        features = np.load(self.folder / _TEST)
        return features, KnnGraph.load(self.folder / _TEST_GRAPH)
