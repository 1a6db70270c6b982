"""The k-NN search engine."""

from hilander.knn.search import build_knn_graph

__all__ = ["build_knn_graph"]
