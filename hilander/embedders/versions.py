"""Versions of embedders: they change when the same input would give another embedding."""

from __future__ import annotations

import hashlib
from pathlib import Path

_DIGITS = 16


def digest_file(path: Path) -> str:
    """The first digits of the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()[:_DIGITS]


def digest_parameters(parameters: list[bytes]) -> str:
    """The first digits of the SHA-256 of the weights of a network."""
    digest = hashlib.sha256()
    for values in parameters:
        digest.update(values)
    return digest.hexdigest()[:_DIGITS]
