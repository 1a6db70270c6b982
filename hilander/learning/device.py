"""The device and the threads that networks run on."""

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
    """Process blocks of nodes that do not depend on each other, on all cores.

    A block fits in the processor's cache and is too small to be shared by two threads. Each thread
    takes whole blocks, so the results do not depend on the number of threads.

    Parameters
    ----------
    function : callable (rows) -> None
        Writes the results of the rows in place.
    blocks : iterable of slice
    place : torch device
        A GPU gets one block at a time.
    """
    blocks = list(blocks)
    with open_workers(alone=place.type != "cpu" or len(blocks) < 2) as workers, one_thread():
        workers.map(function, blocks)


@contextmanager
def one_thread() -> Iterator[None]:
    """Make torch use one thread: with several, the last digits of results may differ."""
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
