"""Fixtures every stage shares."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real embeddings and golden files; the test skips itself where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("HILANDER_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set HILANDER_DATA to the folder of real embeddings")
    return folder


@pytest.fixture(scope="module")
def small_steps():
    """Epochs of five steps for the default method."""
    from hilander.linkage.evidence import training as evidence_learning

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 5)
        yield


@pytest.fixture(scope="module")
def labelled():
    """Points of twenty identities of eight, and their labels."""
    from hilander.synthetic.identities import make_identities

    return make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=0)
