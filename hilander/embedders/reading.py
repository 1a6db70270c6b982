"""Read, hash and prepare pictures: what a worker process does for a few files at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hilander.embedders.cache import EmbeddingCache
from hilander.embedders.decoding import open_reduced, own_limits, read_file
from hilander.embedders.listing import stat_file
from hilander.embedders.protocol import BOX_PREFIX, Piece, Preparation
from hilander.embedders.skipping import SkippedItem


@dataclass(frozen=True, eq=False)
class ReadPicture:
    """A file as a worker read it.

    Attributes
    ----------
    path : str
    facts : tuple of three ints, optional
        Size, time of change and number of the file before it was read.
    digest : bytes, optional
        SHA-256 of the content; None if it could not be read.
    pieces : list of Piece, optional
        None if the cache has the content already, or there is a reason.
    reason : str, optional
        Why it cannot be embedded.
    lasting : bool
        Whether the same content will give the same reason again.
    """

    path: str
    facts: tuple[int, int, int] | None = None
    digest: bytes | None = None
    pieces: list[Piece] | None = None
    reason: str | None = None
    lasting: bool = False


class PictureReader:
    """Reads files for one embedder.

    Parameters
    ----------
    prepare : Preparation
    folder : Path
        Of the cache; it exists.
    embedder : str
        As `cache_key` gives it.
    """

    def __init__(self, prepare: Preparation, folder: Path, embedder: str) -> None:
        self.prepare = prepare
        self.cache = EmbeddingCache(folder, embedder, read_only=True)

    def read(self, paths: Iterable[str]) -> list[ReadPicture]:
        """Read some files. A bad one has a reason."""
        with own_limits():
            return [self._read_one(path) for path in paths]

    def _read_one(self, path: str) -> ReadPicture:
        facts = stat_file(path)
        digest = None
        try:
            content = read_file(path)
            digest = hashlib.sha256(content).digest()
            if self.cache.has(digest):
                return ReadPicture(path, facts, digest)
            picture, reduction = open_reduced(content, self.prepare.least_side)
            pieces = [_at_full_size(piece, reduction) for piece in self.prepare(picture)]
            return ReadPicture(path, facts, digest, pieces)
        except SkippedItem as skipped:
            return ReadPicture(path, facts, digest, None, skipped.reason, skipped.lasting)
        except MemoryError:
            return ReadPicture(path, facts, digest, None, "is too large for the memory")
        except Exception as error:  # a defect of the preparation must not end the run
            reason = f"could not be prepared: {type(error).__name__}: {error}"
            return ReadPicture(path, facts, digest, None, reason)


def _at_full_size(piece: Piece, reduction: float) -> Piece:
    """The piece with its box in pixels of the picture at full size."""
    if reduction == 1:
        return piece
    facts = {
        name: value * reduction if name.startswith(BOX_PREFIX) else value
        for name, value in piece.facts.items()
    }
    return Piece(piece.pixels, facts)
