"""Linkage that is a probability: learn a scaling on held-out identities, fold it into a network.

The last layer of a look takes it up, so nothing else has to be stored. Clusters of the first level
stay what they were if p_tau is scaled too: ``logit(p) - logit(p_tau)`` only changes its unit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hilander.data.episodes import Episode
from hilander.graph import KnnGraph, start_nodes
from hilander.model.evidence_network import EvidenceNetwork
from hilander.tree import Scorer
from hilander.validation.calibration import Scaling, learn_scaling, same_identity


def learn_link_scaling(
    episodes: Iterable[Episode], graphs: Iterable[KnnGraph], scorers: Iterable[Scorer]
) -> Scaling:
    """The correction of the linkage of points that suits identities never seen.

    Parameters
    ----------
    episodes : iterable of Episode
        Of identities that the network was not trained on, in several size distributions: a
        scaling learnt on one does not suit another.
    graphs : iterable of KnnGraph
        Of their points.
    scorers : iterable of Scorer
        One for each episode.

    Returns
    -------
    scaling : Scaling
    """
    linkage, same = [], []
    for episode, graph, score in zip(episodes, graphs, scorers, strict=True):
        linkage.append(score(graph, start_nodes(episode.features)).linkage.ravel())
        same.append(same_identity(graph.neighbours, episode.labels).ravel())
    if not linkage:
        return Scaling()
    return learn_scaling(np.concatenate(linkage), np.concatenate(same))


def scale_links(network: EvidenceNetwork, scaling: Scaling) -> None:
    """Fold a scaling into the network's last look at points, in place."""
    network.looks(super_nodes=False)[1].rescale(scaling.slope, scaling.offset)
