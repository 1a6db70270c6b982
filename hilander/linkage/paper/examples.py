"""Level graphs with their ground truth: the training examples of LANDER."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilander.arrays.rows import IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes
from hilander.graph.scores import score_by_labels
from hilander.linkage.paper.losses import EdgeTargets
from hilander.linkage.paper.scorer import make_inputs
from hilander.linkage.paper.settings import Features


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """The graph of one level and its ground truth.

    Parameters
    ----------
    x : Tensor of shape (n_nodes, input_width)
        Input of the network for each node.
    neighbours : Tensor of shape (n_nodes, k), int64
    targets : EdgeTargets of all n_nodes nodes
    identity : ndarray of shape (n_nodes,)
        Identity of each node; batches keep the nodes of one identity together.
    """

    x: Tensor
    neighbours: Tensor
    targets: EdgeTargets
    identity: IntArray

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def of_level(
        cls, graph: KnnGraph, nodes: Nodes, identity: IntArray, features: Features
    ) -> TrainingGraph:
        """Prepare one level of the ground-truth hierarchy.

        Parameters
        ----------
        graph : KnnGraph of n_nodes nodes
        nodes : Nodes of the same length
        identity : ndarray of shape (n_nodes,)
        features : {"identity", "average", "concat"}
        """
        truth = score_by_labels(graph, identity)
        counted = truth.density[:, None] <= truth.density[graph.neighbours]
        targets = EdgeTargets(
            affinity=torch.from_numpy(graph.affinity),
            same=torch.from_numpy(truth.linkage.astype(np.int64)),
            density=torch.from_numpy(truth.density),
            counted=torch.from_numpy(counted),
        )
        x = torch.from_numpy(make_inputs(nodes, features))
        return cls(x, torch.from_numpy(graph.neighbours), targets, identity)

    def targets_of(self, rows: Tensor) -> EdgeTargets:
        """Ground truth of some nodes."""
        whole = self.targets
        return EdgeTargets(
            whole.affinity[rows], whole.same[rows], whole.density[rows], whole.counted[rows]
        )

    def to(self, device: torch.device) -> TrainingGraph:
        """Give the same graph on another device."""
        whole = self.targets
        moved = EdgeTargets(
            whole.affinity.to(device),
            whole.same.to(device),
            whole.density.to(device),
            whole.counted.to(device),
        )
        return TrainingGraph(self.x.to(device), self.neighbours.to(device), moved, self.identity)
