"""k-NN search and the (n, k) graph; edge scores from labels."""

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes, start_nodes
from hilander.graph.scores import EdgeScores, edge_density, score_by_labels
from hilander.graph.search import build_knn_graph, check_k, edge_affinity

__all__ = [
    "EdgeScores",
    "KnnGraph",
    "Nodes",
    "build_knn_graph",
    "check_k",
    "edge_affinity",
    "edge_density",
    "score_by_labels",
    "start_nodes",
]
