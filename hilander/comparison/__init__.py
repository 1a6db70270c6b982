"""The comparison of methods: our own beside the peers, run under limits, one row a run."""

from hilander.comparison.methods import METHODS, choose_methods
from hilander.comparison.pair import Pair, prepare_pair, read_pair
from hilander.comparison.run import Plan, Progress, compare_methods

__all__ = [
    "METHODS",
    "Pair",
    "Plan",
    "Progress",
    "choose_methods",
    "compare_methods",
    "prepare_pair",
    "read_pair",
]
