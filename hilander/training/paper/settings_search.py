"""The settings of the published method, chosen on identities that it was not trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hilander.knn.search import build_knn_graph
from hilander.learning.checkpoint import EpochRecord
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.scorer import LanderScorer
from hilander.synthetic.episodes import Episode
from hilander.training.paper.plan import PaperPlan
from hilander.training.validation import ValidationSet, score_rules

# Probabilities to try: steps of 0.05, finer near 1.
P_TAU_GRID = (*np.round(np.arange(0.05, 0.96, 0.05), 2).tolist(), 0.975, 0.99)
# Neighbours to try: around the paper's 10.
K_GRID = (5, 10, 15, 20)


class SettingsSearch:
    """Scores k and p_tau on held-out identities.

    Parameters
    ----------
    held_out : Episode
        Points of the validation identities.
    plan : PaperPlan
    """

    def __init__(self, held_out: Episode, plan: PaperPlan) -> None:
        self.held_out, self.plan = held_out, plan
        features = held_out.features
        ks = {plan.rules.k, *(K_GRID if "k" in plan.tune else ())}
        self.graphs = {k: build_knn_graph(features, k) for k in sorted(ks) if k < len(features)}

    def try_settings(self, network: Lander) -> list[dict[str, Any]]:
        """The table of tries: scores of every k and p_tau to choose from."""
        taus = P_TAU_GRID if "p_tau" in self.plan.tune else (self.plan.rules.p_tau,)
        rows = []
        for k, graph in self.graphs.items():
            score = LanderScorer(network, self.plan.device, join_equal_rows=True)
            unseen = ValidationSet.of(self.held_out, graph, score)
            for p_tau in taus:
                rules = replace(self.plan.rules, k=k, p_tau=p_tau)
                rows.append({"k": k, "p_tau": p_tau, **score_rules([unseen], rules)})
        return rows

    def __call__(self, network: Lander) -> EpochRecord:
        """The scores of the best try, for the history."""
        best = take_best(self.try_settings(network))
        return {"val_pairwise_f": best["pairwise_f"], "val_bcubed_f": best["bcubed_f"]}


def take_best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row with the highest F; of several, the middle one, which is farthest from either end."""
    highest = max(row["f"] for row in rows)
    winners = [row for row in rows if row["f"] == highest]
    return winners[len(winners) // 2]
