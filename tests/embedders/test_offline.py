"""Libraries fetch nothing unless the user asks."""

import os
import sys
import types

import pytest

from hilander.embedders.offline import offline_unless


@pytest.mark.parametrize("download", [True, False])
def test_the_libraries_are_told_and_all_is_put_back(monkeypatch, download):
    constants = types.SimpleNamespace(HF_HUB_OFFLINE=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", constants)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    with offline_unless(download):
        assert (os.environ.get("HF_HUB_OFFLINE") == "1") is not download
        assert constants.HF_HUB_OFFLINE is not download
    assert "HF_HUB_OFFLINE" not in os.environ
    assert os.environ["TRANSFORMERS_OFFLINE"] == "0"
    assert constants.HF_HUB_OFFLINE is False
