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
