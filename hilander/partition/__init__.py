"""Edges to one parent for each node, to trees and peaks, to the next level's nodes."""

from hilander.partition.parents import Parents, choose_parents
from hilander.partition.pooling import merge_nodes
from hilander.partition.trees import find_roots, label_trees

__all__ = [
    "Parents",
    "choose_parents",
    "find_roots",
    "label_trees",
    "merge_nodes",
]
