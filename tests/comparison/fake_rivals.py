"""Methods that misbehave, for the tests of the comparison."""

import time

import numpy as np

from hilander.comparison.rival import Axis, Rival
from hilander.comparison.rivals.finch import FINCH


def raise_error(problem, state, params):
    raise ValueError("this method\ncannot go on")


def sleep(problem, state, params):
    time.sleep(60)


def eat_memory(problem, state, params):
    held = np.ones(150_000_000)
    time.sleep(30)
    return held


def second_seed_dies(problem, state, params):
    if problem.seed == 1:
        raise RuntimeError("seed 1 died")
    return np.zeros(len(problem.features), dtype=np.int64)


def all_noise(problem, state, params):
    return np.full(len(problem.features), -1)


METHODS = {
    "FINCH": FINCH,
    "raises": Rival("raises", "paper", raise_error),
    "slow": Rival("slow", "paper", sleep),
    "greedy": Rival("greedy", "paper", eat_memory),
    "square": Rival("square", "paper", all_noise, memory=lambda n, d, k: 10**15),
    "unsteady": Rival("unsteady", "paper", second_seed_dies, varies=True),
    "noise": Rival("noise", "paper", all_noise, axes=(Axis("a", (1, 2)),)),
    "absent": Rival("absent", "today", all_noise, requires=(("no_such_module", "rivals"),)),
}
