"""Fixtures that several packages share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real embeddings and golden files; the test is skipped if it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("HILANDER_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set HILANDER_DATA to the folder of real embeddings")
    return folder


@pytest.fixture(scope="module")
def small_steps():
    """Short training of the default method: five steps an epoch, small grids and validation sets.

    Sets the number of steps when it is called: ``small_steps(25)``.
    """
    from hilander.linkage.evidence import training
    from hilander.training.evidence import network_training, recipe, thresholds

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network_training, "_FEWEST_SYNTHETIC_POINTS", 150)
        patch.setattr(recipe, "VALIDATION_POINTS", 100)
        patch.setattr(thresholds, "P_TAU_GRID", (0.3, 0.45, 0.6, 0.75))
        patch.setattr(thresholds, "MERGE_GRID", (0.45, 0.6, 0.75, 0.9))

        def set_steps(steps):
            patch.setattr(training, "_STEPS_PER_EPOCH", steps)

        set_steps(5)
        yield set_steps


@pytest.fixture
def more_steps(small_steps):
    """25 steps an epoch for one test, where it has to learn something."""
    small_steps(25)
    yield
    small_steps(5)


@pytest.fixture(scope="module")
def labelled():
    """Points of twenty identities of eight, and their labels."""
    from hilander.synthetic.identities import make_identities

    return make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=0)
