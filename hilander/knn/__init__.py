"""The k-NN search: exact, by cells, or on a GPU."""

from hilander.knn.search import build_knn_graph

__all__ = ["build_knn_graph"]
