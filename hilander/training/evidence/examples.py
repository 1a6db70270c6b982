"""Training examples of the edge classifiers: the edges of labelled points."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.background import measure_background
from hilander.linkage.evidence.edge_features import add_second_stage, compute_edge_features
from hilander.linkage.evidence.network import EdgeClassifier
from hilander.linkage.evidence.training import Examples
from hilander.synthetic.episodes import Episode


@dataclass(frozen=True, eq=False)
class GraphExamples:
    """A graph and the features of its edges.

    Parameters
    ----------
    graph : KnnGraph
    examples : Examples
        Features of the edges, and whether each joins one identity.
    """

    graph: KnnGraph
    examples: Examples

    def second_stage_features(self, first: EdgeClassifier) -> GraphExamples:
        """The same edges with the features of the second stage, which depend on the first."""
        features = self.examples.edge_features
        more = add_second_stage(self.graph, features, first.predict(features))
        return replace(self, examples=replace(self.examples, edge_features=more))


def make_point_examples(episode: Episode, k: int) -> GraphExamples:
    """Examples of the edges of an episode's k-NN graph."""
    graph = build_knn_graph(episode.features, k)
    background = measure_background(episode.features)
    features = compute_edge_features(graph, start_nodes(episode.features), background)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    return GraphExamples(graph, Examples(features, same, episode.weight))
