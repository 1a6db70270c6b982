"""Several processes write one output: one of them wins, and nothing is mixed."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.fault_writers import find_faults, write_together
from hilander import HiLander

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("writers").resolve()
    HiLander.load(FIXTURES / "model-default").save(place / "model")
    return place


def test_the_output_is_that_of_one_writer_and_the_other_says_so(place):
    assert write_together(place, 2, 4, np.random.default_rng(2)) == [[]] * 4


def test_a_mixed_output_and_a_silent_loser_are_found():
    line = "hilander: error: out is being written by process 1"
    alone = [{"a": "0"}, {"a": "1"}]
    good = {
        "codes": [0, 2], "said": ["", line], "result": alone[0], "left": ["out"]
    }  # fmt: skip
    assert not find_faults(good, alone, False)
    changes = [
        {"result": {"a": "2"}}, {"result": alone[1]}, {"codes": [2, 2]}, {"said": ["", ""]},
        {"left": ["out", ".out.lock"]}, {"codes": [0, 1]},
    ]  # fmt: skip
    for change in changes:
        assert find_faults(good | change, alone, False)
    assert find_faults(good, alone, True)
