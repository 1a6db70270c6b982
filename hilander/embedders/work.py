"""How to embed, and what became of the items."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hilander.embedders.skipping import Skip


@dataclass(frozen=True)
class EmbeddingWork:
    """How to embed.

    Attributes
    ----------
    cache : Path
        Folder of the cache.
    batch_size : int
        Pieces that the embedder gets at a time.
    n_workers : int
        Processes that read files; 0 reads in this process.
    progress : bool
        Whether to show progress, if standard error is a terminal.
    """

    cache: Path
    batch_size: int = 32
    n_workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    progress: bool = False


@dataclass
class Outcome:
    """What became of the items.

    Attributes
    ----------
    n_items : int
    n_new : int
        Items that were embedded now, and not taken from the cache.
    n_rows : int
        Embeddings that were written.
    seconds : float
        Time of embedding the new ones.
    skips : list of Skip
        Items without an embedding.
    reasons : dict of str to str
        Why a file cannot be embedded, where the cache does not have it.
    """

    n_items: int = 0
    n_new: int = 0
    n_rows: int = 0
    seconds: float = 0.0
    skips: list[Skip] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
