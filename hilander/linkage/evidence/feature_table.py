"""The registry of edge features as a page of the documentation."""

from __future__ import annotations

import math

from hilander.linkage.evidence.edge_measures import CLOSE
from hilander.linkage.evidence.registry import (
    FORMER_SCHEMA,
    GROUPS,
    Group,
    features_of,
    schema_hash,
)

_INTRODUCTION = """# Edge features

The edge classifiers of the default method (`method="evidence"`) see these numbers of an edge from
point i to its neighbour j. The first stage sees the group *edge*. The second stage sees the same
and *second stage*, which is computed from the probabilities of the first. The order of the rows is
the order of the columns. Clusters have no edge features: whether two are one identity follows from
the links between their points.

This page is written from the registry in `hilander/linkage/evidence/registry.py` by
`python docs/figures/edge_features.py`.
"""
_SYMBOLS = {
    "s_ij, s(·)": "cosine c of two vectors, rescaled: (c − b) / (1 − b). The background b is the "
    "median cosine of two random points: s is 0 at the background and 1 for equal points",
    "x_i": "vector of point i, at unit length",
    "N(i), C(i)": f"the k nearest neighbours of i; the closest {CLOSE} of them",
    "mean_i, best_i, close_i, last_i": "mean of s_im over m in N(i); the largest; the mean of the "
    "first 3; the smallest",
    "r_ij": "rank of j in N(i), from 1",
    "m_i, c_i": "mean of the vectors of N(i), of C(i), at unit length",
    "n(·)": "number of elements",
    "p_ij": "probability of the first stage",
    "q_im": "max(p_im, p_mi)",
    "M, Σ": "points m that have an edge with i and an edge with j; sum over M",
    "d_i": "sum of p_im over m in N(i)",
}
_GROUP_NOTES: dict[Group, str] = {
    "edge": "Of both stages.",
    "second stage": "Of the second stage.",
}


def describe_features() -> str:
    """The registry as a page of markdown: symbols, a table for each group, and the schema hash."""
    symbols = [f"| {symbol} | {meaning} |" for symbol, meaning in _SYMBOLS.items()]
    parts = [
        _INTRODUCTION,
        f"Schema hash: `{schema_hash()}`. A model of another hash is refused, but for\n"
        f"`{FORMER_SCHEMA}`, that of versions that also had features of clusters.\n",
        _render_table("symbol | meaning", symbols),
    ]
    for group in GROUPS:
        rows = [
            f"| `{one.name}` | {one.formula} | {_describe_range(*one.range)} |"
            for one in features_of(group)
        ]
        table = _render_table("feature | formula | range", rows)
        parts.append(f"## {group.capitalize()}\n\n{_GROUP_NOTES[group]}\n\n{table}")
    return "\n".join(parts)


def _render_table(header: str, rows: list[str]) -> str:
    """A markdown table."""
    rule = "|".join("---" for _ in header.split("|"))
    return "\n".join([f"| {header} |", f"|{rule}|", *rows, ""])


def _describe_range(low: float, high: float) -> str:
    """An interval: [0, 1], [0, ∞), (−∞, 1], ..."""
    left = "(−∞" if low == -math.inf else f"[{low:g}".replace("-", "−")
    right = "∞)" if high == math.inf else f"{high:g}]"
    return f"{left}, {right}"
