"""Edges to one parent for each node, to trees and peaks, to the next level's nodes."""

from hilander.partition.contraction import contract_edges
from hilander.partition.decoding import DECODERS, Decoder, check_decoder, decode
from hilander.partition.parents import Parents, choose_parents
from hilander.partition.pooling import link_trees, merge_nodes
from hilander.partition.spread import measure_sizes, suit_p_tau
from hilander.partition.trees import find_roots, label_trees

__all__ = [
    "DECODERS",
    "Decoder",
    "Parents",
    "check_decoder",
    "choose_parents",
    "contract_edges",
    "decode",
    "find_roots",
    "label_trees",
    "link_trees",
    "measure_sizes",
    "merge_nodes",
    "suit_p_tau",
]
