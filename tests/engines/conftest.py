"""Both engines, each as one fixture."""

from __future__ import annotations

import pytest

from hilander.engines.ray_engine import RayEngine
from hilander.engines.thread_engine import ThreadEngine


@pytest.fixture(scope="module")
def ray_engine():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'hilander[ray]'")
    engine = RayEngine(n_workers=2, object_store="150MB")
    yield engine
    engine.close()


@pytest.fixture(params=["threads", "ray"], scope="module")
def engine(request):
    if request.param == "threads":
        engine = ThreadEngine(2)
        yield engine
        engine.close()
    else:
        yield request.getfixturevalue("ray_engine")
