"""The registry of edge features: every input of the edge classifiers, in order.

The order of the columns, their number, the columns that the set context reads, the table in the
documentation and the schema hash follow from `FEATURES`. To add a feature, add one entry here and
one test. Weights of another schema are refused when a model is read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.graph.edges import logit_of
from hilander.linkage.evidence.set_context import KINDS, QUANTILES

Group = Literal["edge", "cluster size", "link", "relative size", "second stage", "set context"]
GROUPS: tuple[Group, ...] = get_args(Group)
# From the measures of a block of edges (or of a set) to the column: a value that broadcasts to
# (block, k), or a scalar for the set context.
Kernel = Callable[[Any], Any]
_ANY, _SIGNED, _SHARE = (-math.inf, math.inf), (-1.0, 1.0), (0.0, 1.0)
_UP_TO_0, _FROM_0, _UP_TO_1 = (-math.inf, 0.0), (0.0, math.inf), (-math.inf, 1.0)
_LEAST_UNION = 1e-3  # divisor of the Jaccard index where both sums are 0


@dataclass(frozen=True)
class Feature:
    """One column of the edge features.

    Parameters
    ----------
    name : str
        Unique.
    group : str
        One of `GROUPS`.
    formula : str
        What is computed, in the symbols of the documentation. Part of the schema hash: a changed
        formula is another feature.
    range : (float, float)
        Lowest and highest value.
    kernel : callable
        Computes the column from the measures of the group: `EdgeBlock`, its `clusters`
        (`ClusterBlock`), `SecondStageBlock` or `SetMeasures`.
    reads : tuple of str
        Of the set context: names of the edge features that are summarised.
    """

    name: str
    group: Group
    formula: str
    range: tuple[float, float]
    kernel: Kernel
    reads: tuple[str, ...] = ()


EDGE = [
    Feature("affinity", "edge", "s_ij", _UP_TO_1, lambda e: e.affinity),
    Feature("above_mean_i", "edge", "s_ij − mean_i", _ANY, lambda e: e.affinity - e.mean_i),
    Feature("above_mean_j", "edge", "s_ij − mean_j", _ANY, lambda e: e.affinity - e.mean_j),
    Feature("below_best_i", "edge", "s_ij − best_i", _UP_TO_0, lambda e: e.affinity - e.best_i),
    Feature("below_best_j", "edge", "s_ij − best_j", _ANY, lambda e: e.affinity - e.best_j),
    Feature("below_close_i", "edge", "s_ij − close_i", _ANY, lambda e: e.affinity - e.close_i),
    Feature("below_close_j", "edge", "s_ij − close_j", _ANY, lambda e: e.affinity - e.close_j),
    Feature("above_last_i", "edge", "s_ij − last_i", _FROM_0, lambda e: e.affinity - e.last_i),
    Feature("above_last_j", "edge", "s_ij − last_j", _ANY, lambda e: e.affinity - e.last_j),
    Feature("best_i", "edge", "best_i", _UP_TO_1, lambda e: e.best_i),
    Feature("best_j", "edge", "best_j", _UP_TO_1, lambda e: e.best_j),
    Feature("mean_i", "edge", "mean_i", _UP_TO_1, lambda e: e.mean_i),
    Feature("mean_j", "edge", "mean_j", _UP_TO_1, lambda e: e.mean_j),
    Feature("rank_ij", "edge", "log r_ij", _FROM_0, lambda e: np.log(e.rank)),
    Feature(
        "rank_ji", "edge", "log r_ji; log 2k if i is not in N(j)", _FROM_0,
        lambda e: np.log(np.where(e.is_mutual, e.rank_back, 2 * e.k).astype(np.float32)),
    ),
    Feature("mutual", "edge", "1 if i is in N(j), else 0", _SHARE, lambda e: e.is_mutual),
    Feature("shared", "edge", "n(N(i) ∩ N(j)) / k", _SHARE, lambda e: e.n_shared / np.float32(e.k)),
    Feature(
        "shared_close", "edge", "n(C(i) ∩ C(j)) / 5", _SHARE,
        lambda e: e.n_shared_close / np.float32(e.n_close),
    ),
    Feature("i_to_mean_j", "edge", "s(x_i, m_j)", _UP_TO_1, lambda e: e.i_to_mean_j),
    Feature("mean_i_to_j", "edge", "s(m_i, x_j)", _UP_TO_1, lambda e: e.mean_i_to_j),
    Feature("mean_to_mean", "edge", "m_i · m_j", _SIGNED, lambda e: e.mean_to_mean),
    Feature("i_to_close_j", "edge", "s(x_i, c_j)", _UP_TO_1, lambda e: e.i_to_close_j),
    Feature("close_i_to_j", "edge", "s(c_i, x_j)", _UP_TO_1, lambda e: e.close_i_to_j),
    Feature("close_to_close", "edge", "c_i · c_j", _SIGNED, lambda e: e.close_to_close),
]  # fmt: skip

CLUSTER_SIZE = [
    Feature("smaller", "cluster size", "log min(n_i, n_j)", _FROM_0, lambda e: e.clusters.smaller),
    Feature("larger", "cluster size", "log max(n_i, n_j)", _FROM_0, lambda e: e.clusters.larger),
    Feature("tightness_i", "cluster size", "‖a_i‖", _SHARE, lambda e: e.clusters.tightness_i),
    Feature("tightness_j", "cluster size", "‖a_j‖", _SHARE, lambda e: e.clusters.tightness_j),
    Feature(
        "average_linkage", "cluster size", "(a_i · a_j − b) / (1 − b)", _UP_TO_1,
        lambda e: e.clusters.mean_cosine,
    ),
]  # fmt: skip

LINK = [
    Feature("crossing", "link", "log(1 + n(L))", _FROM_0, lambda e: np.log1p(e.clusters.n_links)),
    Feature(
        "crossing_share", "link", "min(n(L) / (k min(n_i, n_j)), 2)", (0.0, 2.0),
        lambda e: np.minimum(e.clusters.n_links / (e.clusters.smaller_size * e.clusters.k), 2),
    ),
    Feature(
        "crossing_mean", "link", "mean s over L; 0 if L is empty", _UP_TO_1,
        lambda e: e.clusters.rescale_links(e.clusters.link_affinity / e.clusters.at_least_one),
    ),
    Feature(
        "crossing_best", "link", "largest s over L; 0 if L is empty", _UP_TO_1,
        lambda e: e.clusters.rescale_links(e.clusters.link_best),
    ),
    Feature(
        "crossing_linkage", "link", "mean linkage over L; 0 if L is empty", _SHARE,
        lambda e: e.clusters.link_probability / e.clusters.at_least_one,
    ),
    Feature(
        "crossing_log_odds", "link", "sum of logit linkage over L / √n(L); 0 if L is empty", _ANY,
        lambda e: e.clusters.link_log_odds / np.sqrt(e.clusters.at_least_one),
    ),
]  # fmt: skip

RELATIVE_SIZE = [
    Feature(
        "smaller_vs_median", "relative size", "log min(n_i, n_j) − med", _ANY,
        lambda e: e.clusters.smaller - e.clusters.median,
    ),
    Feature(
        "larger_vs_median", "relative size", "log max(n_i, n_j) − med", _ANY,
        lambda e: e.clusters.larger - e.clusters.median,
    ),
    Feature(
        "joined_vs_median", "relative size", "log(n_i + n_j) − med", _ANY,
        lambda e: e.clusters.joined - e.clusters.median,
    ),
    Feature(
        "joined_vs_ninth_decile", "relative size", "log(n_i + n_j) − dec", _ANY,
        lambda e: e.clusters.joined - e.clusters.ninth_decile,
    ),
    Feature(
        "ninth_decile_vs_median", "relative size", "dec − med", _FROM_0,
        lambda e: e.clusters.ninth_decile - e.clusters.median,
    ),
    Feature("size_deviation", "relative size", "dev", _FROM_0, lambda e: e.clusters.deviation),
]  # fmt: skip

SECOND_STAGE = [
    Feature("logit", "second stage", "logit p_ij", _ANY, lambda e: e.logit),
    Feature(
        "logit_higher", "second stage", "logit max(p_ij, p_ji)", _ANY, lambda e: logit_of(e.higher)
    ),
    Feature(
        "logit_lower", "second stage", "logit min(p_ij, p_ji)", _ANY, lambda e: logit_of(e.lower)
    ),
    Feature(
        "agreement", "second stage", "Σ q_im q_jm / n(M)", _SHARE,
        lambda e: e.sum_products / e.at_least_one,
    ),
    Feature(
        "jaccard", "second stage", "Σ q_im q_jm / Σ (q_im + q_jm − q_im q_jm)", _SHARE,
        lambda e: e.sum_products / np.maximum(e.sum_i + e.sum_j - e.sum_products, _LEAST_UNION),
    ),
    Feature(
        "only_i", "second stage", "Σ q_im (1 − q_jm) / n(M)", _SHARE,
        lambda e: (e.sum_i - e.sum_products) / e.at_least_one,
    ),
    Feature(
        "only_j", "second stage", "Σ q_jm (1 − q_im) / n(M)", _SHARE,
        lambda e: (e.sum_j - e.sum_products) / e.at_least_one,
    ),
    Feature("in_common", "second stage", "n(M) / k", _FROM_0, lambda e: e.n_common / e.k),
    Feature("degree_i", "second stage", "d_i / k", _SHARE, lambda e: e.degree_i / e.k),
    Feature("degree_j", "second stage", "d_j / k", _SHARE, lambda e: e.degree_j / e.k),
    Feature(
        "degree_min", "second stage", "min(d_i, d_j) / k", _SHARE,
        lambda e: np.minimum(e.degree_i, e.degree_j) / e.k,
    ),
    Feature("best_logit_i", "second stage", "max_m logit p_im", _ANY, lambda e: e.best_logit_i),
    Feature("best_logit_j", "second stage", "max_m logit p_jm", _ANY, lambda e: e.best_logit_j),
    Feature(
        "below_best_logit_i", "second stage", "logit p_ij − max_m logit p_im", _UP_TO_0,
        lambda e: e.logit - e.best_logit_i,
    ),
    Feature(
        "below_best_logit_j", "second stage", "logit p_ij − max_m logit p_jm", _ANY,
        lambda e: e.logit - e.best_logit_j,
    ),
]  # fmt: skip


def _context_of(kind: str) -> list[Feature]:
    """Entries of the set context about the edges of one kind."""

    def entry(
        name: str,
        formula: str,
        bounds: tuple[float, float],
        kernel: Kernel,
        reads: tuple[str, ...] = (),
    ) -> Feature:
        return Feature(f"{name}_of_{kind}", "set context", formula, bounds, kernel, reads)

    def mean(name: str) -> Feature:
        found = next(one for one in [*EDGE, *LINK] if one.name == name)
        kernel: Kernel = lambda s: s.of[kind].mean[name]  # noqa: E731
        return entry(name, f"mean {name} over {kind}", found.range, kernel, (name,))

    def quantile(percent: int) -> Feature:
        kernel: Kernel = lambda s: s.of[kind].logit[percent]  # noqa: E731
        return entry(
            f"logit_{percent}", f"{percent} % quantile of logit p over {kind}", _ANY, kernel
        )

    return [
        entry("probability", f"mean p over {kind}", _SHARE, lambda s: s.of[kind].probability),
        *(quantile(percent) for percent in QUANTILES),
        *(mean(name) for name in ("crossing_linkage", "crossing_log_odds", "mutual", "shared")),
        entry(
            "size_deviation", f"standard deviation of smaller over {kind}", _FROM_0,
            lambda s: s.of[kind].size_deviation, ("smaller",),
        ),
    ]  # fmt: skip


SET_CONTEXT = [
    Feature(
        "share_of_clusters", "set context", "log((n(clusters) + 1) / (n(edges) + 2))", _UP_TO_0,
        lambda s: s.log_share_of_clusters, ("smaller",),
    ),
    *(one for kind in KINDS for one in _context_of(kind)),
]  # fmt: skip

FEATURES: tuple[Feature, ...] = (
    *EDGE, *CLUSTER_SIZE, *LINK, *RELATIVE_SIZE, *SECOND_STAGE, *SET_CONTEXT,
)  # fmt: skip


def features_of(*groups: Group) -> tuple[Feature, ...]:
    """The features of some groups, in the order of the columns."""
    return tuple(feature for feature in FEATURES if feature.group in groups)


def feature_names(*groups: Group) -> tuple[str, ...]:
    """Names of the features of some groups, in the order of the columns."""
    return tuple(feature.name for feature in features_of(*groups))


def first_stage_groups(*, super_nodes: bool, relative_sizes: bool = False) -> tuple[Group, ...]:
    """Groups that the first stage sees of points or of super-nodes."""
    if not super_nodes:
        return ("edge",)
    return ("edge", "cluster size", "link", *(("relative size",) if relative_sizes else ()))


def n_edge_features(*, super_nodes: bool, relative_sizes: bool = False) -> int:
    """Number of columns that the first stage sees."""
    groups = first_stage_groups(super_nodes=super_nodes, relative_sizes=relative_sizes)
    return len(features_of(*groups))


def context_inputs() -> tuple[str, ...]:
    """Names of the edge features that the set context reads, each once."""
    reads = (name for feature in features_of("set context") for name in feature.reads)
    return tuple(dict.fromkeys(reads))


def compute_columns(
    features: Sequence[Feature], measures: Any, shape: tuple[int, int]
) -> FloatArray:
    """Columns of some features, shape (block, k, n_features), float32, each column contiguous.

    Parameters
    ----------
    features : sequence of Feature
    measures : EdgeBlock or SecondStageBlock
    shape : (block, k)
    """
    columns = np.empty((len(features), *shape), dtype=np.float32)
    for column, feature in zip(columns, features, strict=True):
        column[:] = feature.kernel(measures)
    return np.moveaxis(columns, 0, -1)


def schema_hash() -> str:
    """A digest of the names, groups and formulas of all features, in order.

    Weights that were trained on other columns have another digest.
    """
    schema = [(feature.name, feature.group, feature.formula) for feature in FEATURES]
    return hashlib.sha256(json.dumps(schema).encode()).hexdigest()[:16]
