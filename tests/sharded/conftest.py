"""The pretrained model and both engines."""

from __future__ import annotations

import pytest

from hilander import HiLander
from hilander.engines.ray_engine import RayEngine
from hilander.engines.thread_engine import ThreadEngine
from hilander.linkage.storage import PRETRAINED


@pytest.fixture(scope="session")
def model():
    return HiLander.load(PRETRAINED)


@pytest.fixture(scope="module")
def ray_engine():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'hilander[ray]'")
    engine = RayEngine(n_workers=2, object_store="150MB")
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def threads():
    engine = ThreadEngine(2)
    yield engine
    engine.close()
