"""All rivals by name, in the order of the paper's tables."""

from __future__ import annotations

from hilander.comparison.rival import Rival
from hilander.comparison.rivals.centroids import K_MEANS
from hilander.comparison.rivals.communities import INFOMAP, LEIDEN
from hilander.comparison.rivals.density import DBSCAN, FAST_HDBSCAN, H_DBSCAN
from hilander.comparison.rivals.evoc_layers import EVOC
from hilander.comparison.rivals.finch import FINCH
from hilander.comparison.rivals.graclus import GRACLUS
from hilander.comparison.rivals.learned import GCN_V, GCN_VE, L_GCN
from hilander.comparison.rivals.linkage import HAC, THRESHOLD
from hilander.comparison.rivals.rank_order import ARO

RIVALS: dict[str, Rival] = {
    rival.name: rival
    for rival in (
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
