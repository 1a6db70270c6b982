"""The level loop and the hierarchy it builds."""

from hilander.tree.hierarchy import Hierarchy, Level
from hilander.tree.levels import (
    LevelStep,
    Scorer,
    score_as_released,
    score_with_labels,
    walk_levels,
)
from hilander.tree.rules import Rules

__all__ = [
    "Hierarchy",
    "Level",
    "LevelStep",
    "Rules",
    "Scorer",
    "score_as_released",
    "score_with_labels",
    "walk_levels",
]
