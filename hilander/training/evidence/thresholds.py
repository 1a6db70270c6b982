"""The thresholds of an evidence network, chosen on identities that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hilander.hierarchy.rules import Rules
from hilander.knn.search import build_knn_graph
from hilander.learning.loop import Watch
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.synthetic.episodes import Episode, Sizes, resample_identities
from hilander.synthetic.identity_bootstrap import IdentityBootstrap
from hilander.training.validation import ValidationSet, score_rules

# Probabilities to try for links of points: steps of about half a unit of log-odds.
P_TAU_GRID = (0.35, 0.5, 0.6, 0.7, 0.8, 0.88)
# Probabilities to try for merges of clusters, which follow from the links of their points.
MERGE_GRID = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Points of the largest validation set; bounds the time of a try.
VALIDATION_POINTS = 6000
# p_tau where the score curve is flat, as it is between .5 and .85: merges make up for a high one.
DEFAULT_THRESHOLD = 0.7
# Penalty of a threshold away from its default, as F for a squared unit of log-odds. Without it,
# chance would choose where the score curve is nearly flat.
_PULL, _MERGE_PULL = 0.02, 0.02
# Draws of each bootstrapped set: two halve the variance of a try.
_N_DRAWS = 2
# Weights of the validation sets. Sizes as they are count most, since they are the best estimate
# of sizes to come. Bootstrapped sets have more identities, vary less and weigh twice as much.
_REAL_WEIGHTS: dict[Sizes, float] = {"all": 1.0, "singles": 0.5, "log": 0.5}
_BOOTSTRAP_WEIGHTS: dict[Sizes, float] = {"even": 1.0, "singles": 0.5, "log": 0.5}
# Degree of the polynomial through the tries: a cubic may fall faster on one side of its maximum.
_CURVE_DEGREE = 3
# Places at which the curve is evaluated: steps of less than 0.01 of probability.
_CURVE_PLACES = 201


class ThresholdSearch:
    """Scores thresholds on held-out identities, over several size distributions.

    Parameters
    ----------
    network : EvidenceNetwork
    held_out : sequence of Episode
        Labelled sets of identities that the network was not trained on.
    rules : Rules
        Its threshold of merges is the one that the choice is pulled to.
    seed : int
        Seed of the sets that are made from the labelled ones.
    device : str
    most_points : int
        Points of the largest validation set.
    extra_sets : sequence of Episode
        More labelled sets, used as they are.
    watch : callable (items) -> iterator
        Receives the sets of each try, and may raise to end the search.
    bootstrap : type
        Makes new identities from those of `held_out`.
    """

    def __init__(
        self,
        network: EvidenceNetwork,
        held_out: Sequence[Episode],
        rules: Rules,
        *,
        seed: int = 0,
        device: str = "auto",
        most_points: int = VALIDATION_POINTS,
        extra_sets: Sequence[Episode] = (),
        watch: Watch = iter,
        bootstrap: type[IdentityBootstrap] = IdentityBootstrap,
    ) -> None:
        self.rules, self.watch = rules, watch
        rng = np.random.default_rng([seed, 3])
        made = [
            one
            for unseen in held_out
            for one in make_validation_episodes(unseen, rng, most_points, bootstrap)
        ]
        self.sets = [
            ValidationSet.of(
                one, build_knn_graph(one.features, rules.k), EvidenceScorer(network, device)
            )
            for one in [*made, *extra_sets]
            if len(one.labels) > rules.k and len(np.unique(one.labels)) > 1
        ]

    def choose(
        self, pull: float = _PULL, default: float = DEFAULT_THRESHOLD
    ) -> tuple[Rules, list[dict[str, Any]]]:
        """Choose p_tau of the points, then p_tau of the merges.

        Parameters
        ----------
        pull, default : float
            As for `find_best`, of p_tau. With more sets a smaller pull is enough.

        Returns
        -------
        rules : Rules with both thresholds
        table : list of dict
            Every try.
        """
        table = [self.try_rules(replace(self.rules, p_tau=p_tau)) for p_tau in P_TAU_GRID]
        chosen = replace(self.rules, p_tau=find_best(table, "p_tau", pull, default))
        merges = [self.try_rules(replace(chosen, p_tau_merge=p_tau)) for p_tau in MERGE_GRID]
        merge = find_best(merges, "p_tau_merge", _MERGE_PULL, self.rules.threshold(1))
        return replace(chosen, p_tau_merge=merge), table + merges

    def try_rules(self, rules: Rules) -> dict[str, Any]:
        """One row of the table: the thresholds and their mean scores."""
        thresholds = {"p_tau": rules.p_tau, "p_tau_merge": rules.p_tau_merge}
        return {**thresholds, **score_rules(self.watch(self.sets), rules)}


def find_best(
    rows: list[dict[str, Any]], name: str, pull: float = _PULL, default: float = DEFAULT_THRESHOLD
) -> float:
    """The threshold at which a smooth curve through the tries is highest.

    The curve is a cubic in the log-odds, less ``pull * (log-odds - those of default)^2``. A cubic
    does not follow one wrong merge that changes the score of one try. Where the curve is nearly
    flat, the penalty moves the result towards `default`.

    Parameters
    ----------
    rows : list of dict
        Tries, as `ThresholdSearch.try_rules` gives them, at more than three thresholds.
    name : {"p_tau", "p_tau_merge"}
        Which threshold was tried.
    pull : float
        Penalty of a threshold away from `default`, as F for a squared unit of log-odds.
    default : float
        The threshold that the curve is pulled towards.

    Returns
    -------
    threshold : float, between the lowest and the highest tried
    """
    tried = np.array([row[name] for row in rows])
    log_odds = np.log(tried / (1 - tried))
    curve = np.polynomial.Polynomial.fit(log_odds, [row["f"] for row in rows], _CURVE_DEGREE)
    places = np.linspace(log_odds.min(), log_odds.max(), _CURVE_PLACES)
    distance = places - np.log(default / (1 - default))
    peak = places[np.argmax(curve(places) - pull * distance**2)]
    return round(float(1 / (1 + np.exp(-peak))), 2)


def make_validation_episodes(
    held_out: Episode,
    rng: np.random.Generator,
    most_points: int = VALIDATION_POINTS,
    bootstrap: type[IdentityBootstrap] = IdentityBootstrap,
) -> list[Episode]:
    """The held-out identities as they are, re-sampled, and bootstrapped.

    A set to come will have more identities than could be held out, and so more that are easily
    confused. The bootstrapped sets have many identities, as hard to tell apart as the real ones.
    """
    made = [
        replace(resample_identities(held_out, sizes, most_points, rng), weight=weight)
        for sizes, weight in _REAL_WEIGHTS.items()
    ]
    maker = bootstrap(held_out)
    if maker.can_draw:
        for sizes, weight in _BOOTSTRAP_WEIGHTS.items():
            for _ in range(_N_DRAWS):
                many = maker.make(sizes, most_points, rng, as_hard=True)
                made.append(replace(many, weight=weight))
    return made
