"""Versions of embedders: they change when the same input would give another embedding."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hilander.io.digests import digest_file

_DIGITS = 16


def digest_weights(path: Path) -> str:
    """The first digits of the digest of a file."""
    return digest_file(path)[:_DIGITS]


def digest_parameters(parameters: list[bytes]) -> str:
    """The first digits of the SHA-256 of the weights of a network."""
    digest = hashlib.sha256()
    for values in parameters:
        digest.update(values)
    return digest.hexdigest()[:_DIGITS]
