"""Functions over arrays that are compiled to machine code by numba.

Modules of such functions are named `*_kernels` and imported inside the functions that call them,
because importing numba takes half a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered, so that they are computed in vector registers. Infinity and NaN keep their
# meaning. The results do not depend on the number of threads.
_ARITHMETIC = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Function) -> Function:
    """Compile a function at its first call, without the global interpreter lock.

    The machine code is stored beside the module, or in the user's cache folder, and read by later
    processes. If neither folder can be written, every process compiles anew.

    Parameters
    ----------
    function : callable
        On numbers and arrays; see the numba documentation for what it may use.
    """
    from numba import njit

    options: dict[str, Any] = {"nogil": True, "fastmath": _ARITHMETIC, "error_model": "numpy"}
    try:
        fast: Function = njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder to store the code in
        fast = njit(**options)(function)
    return fast
