"""The level loop, the hierarchy that it builds, and its storage."""

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer

__all__ = ["Hierarchy", "Level", "LevelStep", "Rules", "Scorer", "walk_levels"]
