"""The parts of a fitted estimator: what `HiLander` shows of its model, and its final partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from hilander.arrays.rows import IntArray
from hilander.embeddings.partial_labels import encode_partly
from hilander.metrics.scores import bcubed_f

if TYPE_CHECKING:  # the networks behind a model import torch, which takes a second
    from hilander.embeddings.preparation import PerSetPreparation, Preparation
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.rules import Rules
    from hilander.training.model import Model

_NOT_FITTED = (
    "This %(name)s instance is not fitted yet, expected a trained one; call fit(X, y) with "
    "labelled embeddings, or use %(name)s.pretrained(), which needs no labels"
)


class FittedParts:
    """Attributes that read the trained model, and methods on the final partition."""

    model_: Model

    @property
    def network_(self) -> Any:
        """The trained network."""
        return self.model_.network

    @property
    def rules_(self) -> Rules:
        """Rules of inference, as chosen."""
        return self.model_.rules

    @property
    def preparation_(self) -> Preparation | PerSetPreparation:
        """Normalisation, centring and a linear map, as learned."""
        return self.model_.preparation

    @property
    def history_(self) -> list[dict[str, Any]]:
        """Losses of each epoch."""
        return self.model_.history

    @property
    def summary_(self) -> dict[str, Any]:
        """Counts and the validation table."""
        return self.model_.summary

    if TYPE_CHECKING:  # of the estimator

        def fit(self, X: Any, y: Any = None) -> Any:
            """Learn to cluster."""

        def cluster(self, X: Any) -> Hierarchy:
            """Cluster embeddings."""

    def predict(self, X: Any) -> IntArray:
        """Cluster embeddings and return the final partition, shape (n_samples,), ints from 0.

        The points of X are clustered jointly: the cluster of a point depends on the others. A
        single row is one cluster. To look up rows in a hierarchy, use `assign`.
        """
        return self.cluster(X).labels(-1)

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Learn from labelled embeddings and return the clusters that the model finds in them.

        A pretrained model takes no `y`: it clusters X.
        """
        labels: IntArray = self.fit(X, y).labels_
        return labels

    def score(self, X: Any, y: Any) -> float:
        """BCubed F of the final partition, in [0, 1]; points of unknown identity are left out."""
        found = self.predict(X)
        codes = encode_partly(y, len(found))[0]
        return bcubed_f(codes[codes >= 0], found[codes >= 0])

    def _check_fitted(self) -> None:
        check_is_fitted(self, "model_", msg=_NOT_FITTED)
