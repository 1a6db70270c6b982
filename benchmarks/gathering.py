"""Members of several trained networks, gathered into one.

Members that learned from other sets are wrong in other places; their mean is worth more than that
of as many who learned from the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from hilander.linkage.evidence.network import (
    EdgeClassifier,
    EnsembleLinear,
    EvidenceNetwork,
    insert_part,
)

Hand = Sequence[tuple[int, int]]


def gather_members(networks: Sequence[EvidenceNetwork], hand: Hand) -> EvidenceNetwork:
    """One network of chosen members of some, and so for few points, if they have such.

    Parameters
    ----------
    networks : sequence of EvidenceNetwork, of one shape
    hand : sequence of (network, member)
        Numbers of those to take.

    Returns
    -------
    network : EvidenceNetwork of len(hand) members
    """
    settings = replace(networks[0].settings, members=len(hand))
    gathered = EvidenceNetwork(replace(settings, small_set_points=0))
    for super_nodes in (False, True):
        for number, look in enumerate(gathered.classifiers(super_nodes=super_nodes)):
            theirs = [one.classifiers(super_nodes=super_nodes)[number] for one in networks]
            gather_classifier(look, theirs, hand)
    small_set = [one.small_set for one in networks if one.small_set is not None]
    if len(small_set) < len(networks):
        return gathered.eval()
    return insert_part(settings, gathered, "small_set", gather_members(small_set, hand))


def gather_classifier(look: EdgeClassifier, theirs: Sequence[EdgeClassifier], hand: Hand) -> None:
    """Fill a look with members of others.

    A member's first layer is moved from the standards of its own look to those of the first, so
    that it says what it said. Only evidence beyond the farthest that counts may be cut elsewhere.
    """
    centre, scale = theirs[0].centre, theirs[0].scale
    look.set_scaling(centre.clone(), scale.clone())
    with torch.no_grad():
        for at, (number, member) in enumerate(hand):
            own = theirs[number]
            for mine, layer in zip(layers_of(look), layers_of(own), strict=True):
                mine.weight[at], mine.bias[at] = layer.weight[member], layer.bias[member]
            first = layers_of(look)[0]
            first.bias[at] += ((centre - own.centre) / own.scale) @ first.weight[at]
            first.weight[at] *= (scale / own.scale)[:, None]


def layers_of(look: EdgeClassifier) -> list[EnsembleLinear]:
    """The linear layers of a look, in order."""
    return [layer for layer in look.modules() if isinstance(layer, EnsembleLinear)]
