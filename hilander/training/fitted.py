"""The parts of a fitted estimator: what `HiLander` shows of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:  # the networks behind a model import torch, which takes a second
    from hilander.embeddings.preparation import PerSetPreparation, Preparation
    from hilander.hierarchy.rules import Rules
    from hilander.training.model import Model

_NOT_FITTED = (
    "This %(name)s instance is not fitted yet, expected a trained one; call fit(X, y) with "
    "labelled embeddings, or use %(name)s.pretrained(), which needs no labels"
)


class FittedParts:
    """Attributes that read the trained model of an estimator."""

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

    def _check_fitted(self) -> None:
        check_is_fitted(self, "model_", msg=_NOT_FITTED)
