"""The registry of edge features: every input of the edge classifiers, in order.

The order of the columns, their number, the table in the documentation and the schema hash follow
from `FEATURES`. To add a feature, add one entry here and one test. Weights of another schema are
refused when a model is read.
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

Group = Literal["edge", "second stage"]
GROUPS: tuple[Group, ...] = get_args(Group)
# From the measures of a block of edges to the column: a value that broadcasts to (block, k).
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
        Computes the column from the measures of the group: `EdgeBlock` or `SecondStageBlock`.
    """

    name: str
    group: Group
    formula: str
    range: tuple[float, float]
    kernel: Kernel


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

FEATURES: tuple[Feature, ...] = (*EDGE, *SECOND_STAGE)
# Hash of the schema of versions up to 0.2. It had these features and those of classifiers of
# super-nodes, which are no longer used. Weights of points are the same.
FORMER_SCHEMA = "f67bf942f9da46ba"


def features_of(*groups: Group) -> tuple[Feature, ...]:
    """The features of some groups, in the order of the columns."""
    return tuple(feature for feature in FEATURES if feature.group in groups)


def feature_names(*groups: Group) -> tuple[str, ...]:
    """Names of the features of some groups, in the order of the columns."""
    return tuple(feature.name for feature in features_of(*groups))


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
