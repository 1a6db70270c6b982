"""Which identities are held out for validation."""

from dataclasses import dataclass

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.training.split import as_seed, check_split, choose_held_out

LABELS = np.repeat(np.arange(20), 9)


@dataclass
class Plan:
    val_fraction: float = 0.2
    tune: tuple[str, ...] = ("p_tau",)
    seed: int = 0
    fewest_points: int = 5


def test_held_out_identities_are_disjoint_from_the_others():
    held_out = choose_held_out(LABELS, Plan(val_fraction=0.25))
    inside, outside = set(LABELS[held_out].tolist()), set(LABELS[~held_out].tolist())
    assert not inside & outside
    assert (len(inside), len(outside)) == (5, 15)


def test_which_identities_are_held_out_depends_on_the_seed_alone():
    one, again = (choose_held_out(LABELS, Plan(seed=3)) for _ in range(2))
    np.testing.assert_array_equal(one, again)
    assert (one != choose_held_out(LABELS, Plan(seed=4))).any()


@pytest.mark.parametrize(
    "changes", [{"val_fraction": 0.0}, {"tune": ()}, {"val_fraction": 0.1}, {"fewest_points": 60}]
)
def test_no_identity_is_held_out_if_nothing_can_be_tuned(changes):
    assert not choose_held_out(LABELS, Plan(**changes)).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_fraction": 1.0}, r"val_fraction=1.0 must be in \[0, 1\)"),
        ({"val_fraction": -0.1}, r"val_fraction=-0.1 must be in"),
        ({"tune": ("colour",)}, "tune=.*colour.* is not known; choose from"),
    ],
)
def test_an_impossible_split_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        check_split(Plan(**changes), ("p_tau",))


@pytest.mark.parametrize("seed", [-1, None, 0.5, "0"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(SettingError, match="must be a whole number >= 0"):
        as_seed(seed)
    assert type(as_seed(np.int64(3))) is int
