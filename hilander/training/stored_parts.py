"""Loading and copying a trained estimator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import clone

if TYPE_CHECKING:
    from hilander.linkage.paper.settings import Features
    from hilander.training.model import Model
    from hilander.training.model_folder import ModelFolder


class StoredParts:
    """The methods of an estimator that read and copy its model."""

    model_: Model
    n_features_in_: int
    _is_pretrained = False

    if TYPE_CHECKING:  # of scikit-learn's base class

        def __init__(self, **parameters: Any) -> None: ...

        def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: D102
            ...

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Read a model that `save` wrote; `device` is where it will run."""
        from hilander.training.model_folder import read_model_folder

        return cls._from_folder(read_model_folder(Path(folder)), device)

    @classmethod
    def pretrained(cls, *, device: str = "auto") -> Self:
        """The pretrained model, which clusters the output of any embedder without labels.

        Its card is `docs/results/model-card.md`. If you have labels, `fit` does better. It
        composes: `fit_predict(X)` needs no labels, and a clone is pretrained too.
        """
        from hilander.linkage.storage import PRETRAINED

        estimator = cls.load(PRETRAINED, device=device)
        estimator._is_pretrained = True
        return estimator

    @classmethod
    def from_reference(
        cls,
        path: str | Path,
        *,
        k_reference: int = 10,
        p_tau: float = 0.5,
        features: Features = "concat",
        early_stop: bool = False,
        device: str = "auto",
    ) -> Self:
        """Import weights of the authors' released code, and decode as that code does.

        Parameters
        ----------
        path : path of a `.pth` file
        k_reference, p_tau : int, float
            The reference's `knn_k`, which counts the node itself, and its `tau`.
        features : {"concat", "identity"}
            "concat" if the reference ran with its cluster features.
        early_stop, device
            As for `HiLander`.
        """
        from hilander.training.model_folder import import_reference

        stored = import_reference(Path(path), features, k_reference, p_tau, early_stop=early_stop)
        return cls._from_folder(stored, device)

    @classmethod
    def _from_folder(cls, stored: ModelFolder, device: str) -> Self:
        estimator = cls(**stored.parameters | {"device": device})
        estimator.model_ = stored.model
        if stored.model.n_features is not None:
            estimator.n_features_in_ = stored.model.n_features
        return estimator

    def __sklearn_clone__(self) -> Any:
        """A copy with the same parameters; one of a pretrained model has its weights too."""
        parameters = self.get_params(deep=False)
        copied = type(self)(**{name: clone(one, safe=False) for name, one in parameters.items()})
        if self._is_pretrained:
            copied.model_, copied._is_pretrained = self.model_, True
        return copied
