"""Amounts of memory as text."""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

from hilander.errors import SettingError

_UNITS = {
    "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


def parse_memory(amount: Any) -> int:
    """Parse an amount of memory.

    Parameters
    ----------
    amount : str or int
        ``"512MB"``, ``"4GB"`` (powers of ten), ``"4GiB"`` (powers of two), or a number of bytes.

    Returns
    -------
    n_bytes : int

    Raises
    ------
    SettingError
        When it is not such an amount, or not above 0.
    """
    if isinstance(amount, Integral) and int(amount) > 1:
        return int(amount)
    match = isinstance(amount, str) and re.fullmatch(
        r"([0-9]+(?:\.[0-9]*)?)\s*([kmgt]?i?b)", amount.strip(), flags=re.IGNORECASE
    )
    n_bytes = int(float(match[1]) * _UNITS.get(match[2].upper(), 0)) if match else 0
    if n_bytes < 1:
        raise SettingError(f"memory {amount!r} is not an amount; write it like 512MB, 4GB or 4GiB")
    return n_bytes


def format_memory(n_bytes: float) -> str:
    """An amount of memory as text that `parse_memory` reads: ``3.1 GB``, ``640 MB``."""
    if n_bytes >= 0.9995e9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{max(1, round(n_bytes / 1e6))} MB"
