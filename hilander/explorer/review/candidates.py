"""What could be asked: parts that may leave their group, and groups that may be one.

The candidates of the run are found once. After an action, only those of the changed groups are
found again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.joins import Joins, ReverseEdges, find_joins, update_joins
from hilander.explorer.partition.splits import Splits, find_splits
from hilander.explorer.review_log.state import ReviewState
from hilander.explorer.run.graph import RunGraph
from hilander.explorer.run.leaf_order import LeafOrder, build_leaf_order
from hilander.explorer.run.run_folder import Run
from hilander.graph.edges import logit_of

# Parts of the run that are kept: far more than anybody answers.
_MOST_SPLITS = 20_000
# Pairs of groups, likewise.
_MOST_JOINS = 50_000
# Log-odds that a part is of another identity than the rest of its group and can be parted cleanly:
# a constant, and the weights of the log-odds of the linkage between them, of the logarithm of their
# edges as a share of those possible and of those that chance would give, and of the logarithm of
# the size. Fitted by logistic regression to parts of six training sets that the pretrained model
# clustered; no rows of that fit are stored.
_APART = {"constant": -1.94, "linkage": -0.29, "possible": -1.17, "chance": -0.45, "size": -0.53}
# The linkage is kept this far away from 0 and 1.
_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of one run, and what is needed to find those of changed groups.

    Parameters
    ----------
    leaves : LeafOrder
    graph : RunGraph
    reverse : ReverseEdges
    splits : Splits
        Parts of the run's own clusters that are most worth a question.
    joins : Joins
        All pairs of the run's own clusters.
    """

    leaves: LeafOrder
    graph: RunGraph
    reverse: ReverseEdges
    splits: Splits
    joins: Joins
    _found: dict[int, tuple[IntArray, Splits]] = field(default_factory=dict)

    def splits_of(self, state: ReviewState) -> Splits:
        """Return the parts that may leave their groups as reviewed."""
        changed = np.fromiter(state.changed, dtype=np.int64, count=len(state.changed))
        found = [self.splits.take(~np.isin(self.splits.group, changed))]
        for group, rows in state.changed.items():
            if len(rows) > 1:
                found.append(self._splits_of_group(group, rows, state.labels))
        return Splits.join(found)

    def joins_of(self, state: ReviewState) -> Joins:
        """Return the pairs of groups as reviewed."""
        return update_joins(
            self.joins, self.graph, self.reverse, state.labels, state.changed, state.next_group
        )

    def doubt_of(self, state: ReviewState) -> FloatArray:
        """Return how probable it is that each group holds a part of another identity."""
        splits = self.splits_of(state)
        doubt = np.zeros(state.next_group, dtype=np.float32)
        np.maximum.at(doubt, splits.group, 1 - estimate_splits(splits, self.graph.k))
        return doubt

    def _splits_of_group(self, group: int, rows: IntArray, labels: IntArray) -> Splits:
        # A review never changes an array of rows, it replaces it.
        if group not in self._found or self._found[group][0] is not rows:
            self._found[group] = (rows, find_splits(self.leaves, self.graph, labels, rows))
        return self._found[group][1]


def find_candidates(run: Run, base: Grouping) -> Candidates | None:
    """Find the candidates of a run; None if it has no graph."""
    tree = run.merge_tree
    if run.graph is None or tree is None:
        return None
    leaves = build_leaf_order(tree)
    splits = find_splits(leaves, run.graph, base.labels)
    gain = (1 - estimate_splits(splits, run.graph.k)) * weigh(splits.size, splits.rest)
    best = np.argsort(-gain, kind="stable")[:_MOST_SPLITS]
    joins = find_joins(run.graph, base.labels, base.n_groups)
    if len(joins.a) > _MOST_JOINS:
        same = joins.estimate(base.sizes, run.graph.k)
        worth = same * weigh(base.sizes[joins.a], base.sizes[joins.b])
        kept = np.zeros(len(worth), dtype=bool)
        kept[np.argpartition(-worth, _MOST_JOINS)[:_MOST_JOINS]] = True
        joins = joins.take(kept)
    return Candidates(leaves, run.graph, ReverseEdges.of_graph(run.graph), splits.take(best), joins)


def estimate_splits(splits: Splits, k: int) -> FloatArray:
    """Return the probability that each part belongs to its group, shape (n_parts,).

    It is one minus the probability that the part is of another identity than the rest and that
    parting them is clean: no identity is on both sides.
    """
    features = describe_splits(splits, k)
    logit = _APART["constant"] + sum(_APART[name] * features[name] for name in features)
    return (1 / (1 + np.exp(logit))).astype(np.float32)


def describe_splits(splits: Splits, k: int) -> dict[str, FloatArray]:
    """Return what the probability of a part is estimated from, each of shape (n_parts,)."""
    linkage = np.where(splits.count > 0, splits.total / np.maximum(splits.count, 1), 0)
    count = np.maximum(splits.count, 0.5)
    whole = splits.size + splits.rest
    smaller = np.minimum(splits.size, splits.rest)
    by_chance = splits.count_inside * 2 * splits.size * splits.rest / (whole * (whole - 1.0))
    return {
        "linkage": logit_of(linkage, _LEAST),
        "possible": np.log(count / (k * smaller)),
        "chance": np.log(count / np.maximum(by_chance, _LEAST)),
        "size": np.log(smaller),
    }


def weigh(size: IntArray, rest: IntArray) -> FloatArray:
    """Return what joining or parting two sides changes: twice their harmonic mean.

    Each of the pairs between the sides is counted once for each of its members, divided by the size
    of the cluster, as BCubed counts them.
    """
    weight: FloatArray = 2.0 * size * rest / np.maximum(size + rest, 1)
    return weight
