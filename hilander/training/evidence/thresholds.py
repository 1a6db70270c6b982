"""Choosing the thresholds of an evidence network on identities that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import CachedScorer
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import Watch
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.synthetic.episodes import Episode, Sizes, resample_identities
from hilander.synthetic.identity_bootstrap import IdentityBootstrap

P_TAU_GRID = (0.35, 0.5, 0.6, 0.7, 0.8, 0.88)
MERGE_GRID = (0.42, 0.6, 0.73)
VALIDATION_POINTS = 6000
# Where nothing speaks for another p_tau: the middle of what held-out identities of faces
# and characters ask for. To go a unit of log-odds away from it takes so much of F.
DEFAULT_THRESHOLD = 0.55
_PULL = 0.02
_DRAWS = 2  # of each bootstrapped set
_REAL_WEIGHTS: dict[Sizes, float] = {"all": 1.0, "singles": 0.5, "log": 0.5}
_BOOTSTRAP_WEIGHTS: dict[Sizes, float] = {"even": 1.0, "singles": 0.5, "log": 0.5}


class ThresholdSearch:
    """Scores thresholds on held-out identities, over several size distributions.

    Parameters
    ----------
    network : EvidenceNetwork
    held_out : sequence of Episode
        Labelled sets of identities that the network has not seen.
    rules : Rules
        What is not chosen.
    seed : int
        Of the episodes that are made of the sets.
    device : str
    most_points : int
        Of an episode.
    as_they_are : sequence of Episode
        More labelled sets to judge by, of which no others are made.
    watch : callable (items) -> iterator
        Is asked for each set at each try, and may raise to end the judging.
    bootstrap : type
        Makes new identities of those sets.
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
        as_they_are: Sequence[Episode] = (),
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
        self.episodes = [
            one
            for one in [*made, *as_they_are]
            if len(one.labels) > rules.k and len(np.unique(one.labels)) > 1
        ]
        self.graphs = [build_knn_graph(one.features, rules.k) for one in self.episodes]
        self.scores = [CachedScorer(EvidenceScorer(network, device)) for _ in self.graphs]

    def choose(
        self, careful: float = 0.0, pull: float = _PULL, usual: float = DEFAULT_THRESHOLD
    ) -> tuple[Rules, list[dict[str, Any]]]:
        """Choose p_tau for the points, then that of the merges; the table holds all tries.

        Parameters
        ----------
        careful : float
            What of F may be given up for more careful merges.
        pull, usual : float
            As for `find_peak`: the pull is less where there are more sets to judge by.
        """
        cautious = replace(self.rules, p_tau_merge=max(MERGE_GRID))
        table = [self.try_rules(replace(cautious, p_tau=p_tau)) for p_tau in P_TAU_GRID]
        chosen = replace(cautious, p_tau=find_peak(table, pull, usual))
        merges = [self.try_rules(replace(chosen, p_tau_merge=p_tau)) for p_tau in MERGE_GRID]
        chosen = replace(chosen, p_tau_merge=take_careful(merges, "p_tau_merge", careful))
        return chosen, table + merges

    def try_rules(self, rules: Rules) -> dict[str, Any]:
        """Mean scores of one setting."""
        scores = []
        sets = zip(self.episodes, self.graphs, self.scores, strict=True)
        for episode, graph, score in self.watch(sets):
            found = Hierarchy.of_steps(walk_levels(episode.features, score, rules, graph=graph))
            predicted = found.labels(-1)
            scores.append(
                (pairwise_f(episode.labels, predicted), bcubed_f(episode.labels, predicted))
            )
        weights = [episode.weight for episode in self.episodes]
        pair, bcubed = np.average(scores, axis=0, weights=weights) if scores else (0.0, 0.0)
        pair, bcubed = float(pair), float(bcubed)
        setting = {"p_tau": rules.p_tau, "p_tau_merge": rules.p_tau_merge}
        return {**setting, "pairwise_f": pair, "bcubed_f": bcubed, "f": (pair + bcubed) / 2}


def find_peak(
    rows: list[dict[str, Any]], pull: float = _PULL, usual: float = DEFAULT_THRESHOLD
) -> float:
    """The p_tau at which a smooth curve through the tries is highest.

    A single wrong merge moves the score of one try; a cubic of the log-odds, which may fall off
    faster on one side than on the other, does not follow it. Where the curve is flat, chance would
    choose; so the curve is drawn a little towards a usual p_tau.

    Parameters
    ----------
    rows : list of dict
        Tries, as `Judge.try_rules` gives them, at more than three values of p_tau.
    pull : float
        What of F it takes to go a unit of log-odds away from the usual p_tau, squared.
    usual : float
        The usual p_tau.

    Returns
    -------
    p_tau : float, between the lowest and the highest tried
    """
    tried = np.array([row["p_tau"] for row in rows])
    log_odds = np.log(tried / (1 - tried))
    curve = np.polynomial.Polynomial.fit(log_odds, [row["f"] for row in rows], 3)
    between = np.linspace(log_odds.min(), log_odds.max(), 201)
    away = between - np.log(usual / (1 - usual))
    peak = between[np.argmax(curve(between) - pull * away**2)]
    return round(float(1 / (1 + np.exp(-peak))), 2)


def take_careful(rows: list[dict[str, Any]], name: str, spare: float = 0.0) -> float:
    """The most careful threshold whose try is at most `spare` below the best."""
    best = max(row["f"] for row in rows)
    return float(max(row[name] for row in rows if row["f"] >= best - spare))


def make_validation_episodes(
    held_out: Episode,
    rng: np.random.Generator,
    most_points: int = VALIDATION_POINTS,
    bootstrap: type[IdentityBootstrap] = IdentityBootstrap,
) -> list[Episode]:
    """The held-out identities as they are, re-sampled, and bootstrapped.

    The sizes at hand are the best guess of the sizes to come, so they have half the weight. There
    will be more identities to come than could be held out, and among many there are more to
    confuse: the bootstrapped sets have many, as hard to tell apart as the real ones. They are
    steadier judges than the few real ones, too, and weigh twice as much.
    """
    made = [
        replace(resample_identities(held_out, sizes, most_points, rng), weight=weight)
        for sizes, weight in _REAL_WEIGHTS.items()
    ]
    maker = bootstrap(held_out)
    if maker.can_draw:
        for sizes, weight in _BOOTSTRAP_WEIGHTS.items():
            for _ in range(_DRAWS):
                many = maker.make(sizes, most_points, rng, as_hard=True)
                made.append(replace(many, weight=weight))
    return made
