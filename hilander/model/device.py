"""Where the network runs."""

from __future__ import annotations

import torch

from hilander.errors import SettingError


def choose_device(device: str = "auto") -> torch.device:
    """Give the device to run on: "auto" takes a GPU if there is one.

    Parameters
    ----------
    device : str
        "auto", or any name torch knows: "cpu", "cuda", "cuda:1", "mps".
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(1, device=chosen)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise SettingError(f"device={device!r} is not usable here ({reason}); use 'auto'") from None
    return chosen
