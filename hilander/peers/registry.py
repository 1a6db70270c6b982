"""All peers by name, in the order of the paper's tables."""

from __future__ import annotations

from hilander.peers.centroids import K_MEANS
from hilander.peers.communities import INFOMAP, LEIDEN
from hilander.peers.density import DBSCAN, FAST_HDBSCAN, H_DBSCAN
from hilander.peers.evoc_layers import EVOC
from hilander.peers.finch import FINCH
from hilander.peers.graclus import GRACLUS
from hilander.peers.learned import GCN_V, GCN_VE, L_GCN
from hilander.peers.linkage import HAC, THRESHOLD
from hilander.peers.method import Method
from hilander.peers.rank_order import ARO

PEERS: dict[str, Method] = {
    method.name: method
    for method in (
        THRESHOLD,
        K_MEANS,
        DBSCAN,
        ARO,
        HAC,
        H_DBSCAN,
        GRACLUS,
        FINCH,
        L_GCN,
        GCN_V,
        GCN_VE,
        FAST_HDBSCAN,
        EVOC,
        INFOMAP,
        LEIDEN,
    )
}
