"""The parameters of the estimator: their types, deprecated names, and checks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from hilander.errors import GraphError, SettingError
from hilander.knn.search import check_k

if TYPE_CHECKING:
    from hilander.hierarchy.decoding.decode import Decoder

# Values of `start` and `prior` in version 0.1, and their present names.
OLD_VALUES = {"box": "pretrained", "nothing": "none"}
# Default of a deprecated parameter, as in scikit-learn.
NOT_GIVEN = "deprecated"


class Parameters(Protocol):
    """Parameters of `HiLander`; its docstring describes each."""

    method: str
    k: int | Literal["auto"]
    p_tau: float | Literal["auto"]
    decoder: Decoder | Literal["auto"]
    features: Any
    encoder: Any
    hidden: int | None
    layers: int
    heads: int
    centre: bool | Literal["auto"]
    whiten: bool | Literal["auto"]
    epochs: int | None
    learning: Any
    start: str | Path
    prior: str | Path
    adviser: str | Path
    val_fraction: float
    tune_k: bool
    early_stop: bool
    random_state: int
    device: str


def read_learning(parameters: Parameters, kind: type[Any]) -> Any:
    """The learning settings of a method: the given ones or its defaults, with `epochs`."""
    learning = kind() if parameters.learning is None else parameters.learning
    if not isinstance(learning, kind):
        raise SettingError(
            f"learning is {type(learning).__name__}, method={parameters.method!r} needs "
            f"{kind.__name__}; pass that or change the method"
        )
    return learning if parameters.epochs is None else replace(learning, epochs=parameters.epochs)


def check_whiten(parameters: Parameters) -> None:
    """Refuse an unknown value of `whiten`."""
    if parameters.whiten not in (True, False, "auto"):
        raise SettingError(f'whiten={parameters.whiten!r} must be True, False or "auto"')


def read_prior(parameters: Parameters) -> str | Path:
    """`prior`, or `adviser`, its name in version 0.1, with a warning."""
    old = parameters.adviser
    if old == NOT_GIVEN:
        return rename_value("prior", parameters.prior)
    new = old if Path(old).is_dir() else OLD_VALUES.get(str(old), old)
    warnings.warn(
        "the parameter `adviser` is now called `prior`, and will be removed in version 0.3; "
        f"use prior={str(new)!r}",
        FutureWarning,
        stacklevel=2,
    )
    return new


def rename_value(name: str, value: str | Path) -> str | Path:
    """The present name of a value of `start` or `prior`, with a warning if it has an old one."""
    if value not in OLD_VALUES or Path(value).is_dir():
        return value
    new = OLD_VALUES[str(value)]
    warnings.warn(
        f"{name}={value!r} is now called {new!r}, and will be removed in version 0.3; "
        f"use {name}={new!r}",
        FutureWarning,
        stacklevel=2,
    )
    return new


def check_enough(parameters: Parameters, k: int, n_points: int) -> None:
    """Refuse a training set with too few points for k neighbours."""
    if parameters.k == "auto" and n_points <= k:
        raise GraphError(
            f"got only {n_points} labelled embeddings, learning needs at least {k + 1}; label "
            f"more, give a k below {n_points}, or cluster without labels: "
            "HiLander.pretrained().cluster(X)"
        )
    check_k(k, n_points)


def check_seed(seed: object) -> None:
    """Refuse a seed that is not a whole number from 0, such as None."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise SettingError(
            f"random_state={seed!r} is not a seed, expected a whole number >= 0; the same seed "
            "gives the same weights, so pass another one for another draw"
        )
