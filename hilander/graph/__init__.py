"""k-NN search and the (n, k) graph; edge scores from labels."""

from hilander.graph.background import Background, measure_background, measure_strangers
from hilander.graph.evidence import (
    EdgeEvidence,
    SecondEvidence,
    look_again,
    n_evidence,
    weigh_edges,
)
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.links import Links, cross_links
from hilander.graph.nodes import Nodes, start_nodes
from hilander.graph.scores import EdgeScores, edge_density, join_copies, score_by_labels
from hilander.graph.search import build_knn_graph, check_k, edge_affinity
from hilander.graph.search_report import SearchReport

__all__ = [
    "Background",
    "EdgeEvidence",
    "EdgeScores",
    "KnnGraph",
    "Links",
    "Nodes",
    "SearchReport",
    "SecondEvidence",
    "build_knn_graph",
    "check_k",
    "cross_links",
    "edge_affinity",
    "edge_density",
    "join_copies",
    "look_again",
    "measure_background",
    "measure_strangers",
    "n_evidence",
    "score_by_labels",
    "start_nodes",
    "weigh_edges",
]
