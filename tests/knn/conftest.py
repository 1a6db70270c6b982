"""Fixtures of the tests of the search."""

import numpy as np
import pytest

from hilander.knn import search


@pytest.fixture
def cells_for_all(monkeypatch):
    """Search small data by cells too, whatever they cost."""
    monkeypatch.setattr(search, "_EXACT_UP_TO", 0)
    monkeypatch.setattr(search, "_SAMPLE", 400)
    monkeypatch.setattr(search, "_DEAREST_CELLS", np.inf)
