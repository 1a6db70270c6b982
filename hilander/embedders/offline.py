"""Keep libraries from fetching weights, unless the user asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Read by huggingface_hub and transformers. The first reads it when it is imported, so the attribute
# of the imported module is set too.
_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@contextmanager
def offline_unless(download: bool) -> Iterator[None]:
    """Let libraries use only what is on this machine.

    Parameters
    ----------
    download : bool
        Let them fetch.
    """
    if download:
        yield
        return
    former = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    constants = sys.modules.get("huggingface_hub.constants")
    was_offline = getattr(constants, "HF_HUB_OFFLINE", None)
    if constants is not None:
        vars(constants)["HF_HUB_OFFLINE"] = True
    try:
        yield
    finally:
        if constants is not None:
            vars(constants)["HF_HUB_OFFLINE"] = was_offline
        for name, value in former.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
