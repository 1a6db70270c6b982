"""All methods of the comparison: the rivals, LANDER, Hi-LANDER, and the default of this library."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival
from hilander.comparison.rivals.registry import RIVALS
from hilander.errors import SettingError

if TYPE_CHECKING:
    from hilander.estimator import HiLander

PAPER_EPOCHS = 20  # the paper has 250, with SGD; with AdamW, the loss no longer falls after these
_PAPER_RATE = 1e-3  # learning rate of AdamW
_PAPER_BATCH = 1_024  # nodes; a fourth of the paper's


def fit_paper_model(problem: Problem, labels: IntArray, params: Params) -> HiLander:
    """Train the paper's network on the paper's hierarchies, of k = 10, 5 and 3."""
    return _train(problem, labels, ((10, 2), (5, 3), (3, 4)))


def fit_single_level(problem: Problem, labels: IntArray, params: Params) -> HiLander:
    """Train the same network on the graph of the first level only."""
    return _train(problem, labels, ((10, 1),))


def _train(
    problem: Problem, labels: IntArray, hierarchies: tuple[tuple[int, int], ...]
) -> HiLander:
    from hilander.estimator import HiLander
    from hilander.linkage.paper.training import LearningSettings

    learning = LearningSettings(
        epochs=PAPER_EPOCHS,
        batch_size=_PAPER_BATCH,
        optimizer="adamw",
        learning_rate=_PAPER_RATE,
        hierarchies=hierarchies,
    )
    # p_tau is tuned by the protocol, as the settings of every method; k = 10 is the paper's.
    model = HiLander(
        method="paper", k=10, p_tau=0.5, features="identity", encoder="attention", hidden=512,
        layers=1, centre=False, learning=learning, val_fraction=0.0, random_state=problem.seed,
    )  # fmt: skip
    return model.fit(problem.features, labels)


def cluster_levels(problem: Problem, state: HiLander, params: Params) -> IntArray:
    """The final partition at a p_tau."""
    graph = problem.neighbours(state.rules_.k)
    return state.cluster(problem.features, p_tau=params["p_tau"], graph=graph).labels(-1)


def cluster_first_level(problem: Problem, state: HiLander, params: Params) -> IntArray:
    """The partition of the first level at a p_tau."""
    graph = problem.neighbours(state.rules_.k)
    return state.cluster(problem.features, p_tau=params["p_tau"], graph=graph).labels(0)


def fit_default(problem: Problem, labels: IntArray, params: Params) -> HiLander:
    """Train the estimator with its defaults; it tunes itself on identities that it holds out."""
    from hilander.estimator import HiLander

    return HiLander(random_state=problem.seed).fit(problem.features, labels)


def cluster_default(problem: Problem, state: HiLander, params: Params) -> IntArray:
    """The final partition of the trained estimator."""
    return state.predict(problem.features)


def read_choices(fitted: HiLander) -> dict[str, Any]:
    """The settings that the estimator has chosen."""
    return {"k": int(fitted.rules_.k), "p_tau": float(fitted.rules_.p_tau)}


def _memory(n: int, d: int, k: int) -> int:
    return 24 * n * d + 400 * n * 10 + 500_000_000


_P_TAU = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)

LANDER = Rival(
    name="LANDER",
    family="paper",
    cluster=cluster_first_level,
    axes=(Axis("p_tau", _P_TAU, refine=True),),
    fit=fit_single_level,
    needs_labels=True,
    varies=True,
    memory=_memory,
)
HI_LANDER = Rival(
    name="Hi-LANDER (paper)",
    family="paper",
    cluster=cluster_levels,
    axes=(Axis("p_tau", _P_TAU, refine=True),),
    fit=fit_paper_model,
    needs_labels=True,
    varies=True,
    memory=_memory,
)
DEFAULT = Rival(
    name="hilander (default)",
    family="ours",
    cluster=cluster_default,
    fit=fit_default,
    choices=read_choices,
    needs_labels=True,
    varies=True,
    memory=_memory,
)

METHODS: dict[str, Rival] = {
    **RIVALS,
    **{method.name: method for method in (LANDER, HI_LANDER, DEFAULT)},
}


def choose_methods(names: Sequence[str] | None) -> list[Rival]:
    """The methods with the given names, in the order of the registry; all for None.

    Case, spaces and punctuation of a name do not matter.
    """
    if not names:
        return list(METHODS.values())
    known = {_plain(name): name for name in METHODS}
    chosen = set()
    for name in names:
        if _plain(name) not in known:
            near = get_close_matches(_plain(name), known, n=1)
            hint = f"did you mean {known[near[0]]!r}?" if near else f"use {', '.join(METHODS)}"
            raise SettingError(f"method {name!r} is not known; {hint}")
        chosen.add(known[_plain(name)])
    return [method for name, method in METHODS.items() if name in chosen]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == "+")
