"""Join members of several trained networks in one network.

Members that were trained on different sets make different errors. Their mean is better than that
of as many members trained on the same sets.
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

Choice = Sequence[tuple[int, int]]  # numbers of a network and of one of its members


def gather_members(networks: Sequence[EvidenceNetwork], choice: Choice) -> EvidenceNetwork:
    """One network of chosen members; also of the parts for small sets, if all networks have one.

    Parameters
    ----------
    networks : sequence of EvidenceNetwork, of one shape
    choice : sequence of (network, member)
        Numbers of the members to take.

    Returns
    -------
    network : EvidenceNetwork of len(choice) members
    """
    settings = replace(networks[0].settings, members=len(choice))
    gathered = EvidenceNetwork(replace(settings, small_set_points=0))
    for stage, classifier in enumerate(gathered.classifiers()):
        fill_classifier(classifier, [one.classifiers()[stage] for one in networks], choice)
    small_set = [one.small_set for one in networks if one.small_set is not None]
    if len(small_set) < len(networks):
        return gathered.eval()
    return insert_part(settings, gathered, "small_set", gather_members(small_set, choice))


def fill_classifier(
    classifier: EdgeClassifier, sources: Sequence[EdgeClassifier], choice: Choice
) -> None:
    """Copy members of several classifiers into one, in place.

    All members get the scaling of the first source. The first layer of a member is changed so that
    its logits stay equal, except for features that one of the scalings clips.
    """
    centre, scale = sources[0].centre, sources[0].scale
    classifier.set_scaling(centre.clone(), scale.clone())
    with torch.no_grad():
        for at, (number, member) in enumerate(choice):
            source = sources[number]
            for target, layer in zip(linear_layers(classifier), linear_layers(source), strict=True):
                target.weight[at], target.bias[at] = layer.weight[member], layer.bias[member]
            first = linear_layers(classifier)[0]
            first.bias[at] += ((centre - source.centre) / source.scale) @ first.weight[at]
            first.weight[at] *= (scale / source.scale)[:, None]


def linear_layers(classifier: EdgeClassifier) -> list[EnsembleLinear]:
    """The linear layers of a classifier, in order."""
    return [layer for layer in classifier.modules() if isinstance(layer, EnsembleLinear)]
