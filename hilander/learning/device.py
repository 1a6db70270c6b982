"""Where the network runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch

from hilander.engines.threads import open_workers
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


def run_blocks(
    function: Callable[[slice], None], blocks: Iterable[slice], place: torch.device
) -> None:
    """Work on blocks of nodes that do not depend on each other, on all cores.

    A block fits the processor's cache, so it is too small for two threads to share: each takes
    blocks of its own, and the numbers do not depend on how many threads there are.

    Parameters
    ----------
    function : callable (rows) -> None
        Writes its results where they belong.
    blocks : iterable of slice
    place : torch device
        A GPU is given one block at a time.
    """
    blocks = list(blocks)
    with open_workers(alone=place.type != "cpu" or len(blocks) < 2) as workers, one_thread():
        workers.map(function, blocks)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work in the calling thread alone: with several, the last digits may differ."""
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
