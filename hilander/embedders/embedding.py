"""From what the user names to a file of embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hilander.embedders import text_tables
from hilander.embedders.cache import EmbeddingCache, cache_key
from hilander.embedders.listing import LIST_SUFFIXES, Listing, list_pictures
from hilander.embedders.pictures import embed_pictures, picture_rows
from hilander.embedders.protocol import CorpusEmbedder, Embedder, PictureEmbedder
from hilander.embedders.rows import Row, write_rows
from hilander.embedders.skipping import write_skipped
from hilander.embedders.text_tables import TextTable, read_texts
from hilander.embedders.texts import embed_texts, text_rows
from hilander.embedders.work import EmbeddingWork, Outcome
from hilander.errors import EmbeddingError, FileFormatError, MissingFileError, SettingError

DEFAULT_PICTURES = "objects"
DEFAULT_TEXTS = "ngrams"


@dataclass(frozen=True)
class Source:
    """What to embed.

    Attributes
    ----------
    paths : sequence of Path
        Folders, pictures and lists of pictures; or one table of texts.
    text_column, id_column : str, optional
        Columns of a table.
    """

    paths: Sequence[Path]
    text_column: str | None = None
    id_column: str | None = None

    @property
    def holds_texts(self) -> bool:
        """Whether it is a table of texts, by its name."""
        return len(self.paths) == 1 and self.paths[0].suffix.lower() in text_tables.SUFFIXES


@dataclass(frozen=True)
class Destination:
    """Where the result is written.

    Attributes
    ----------
    embeddings : Path
        A Parquet file.
    skipped : Path
        A CSV file: the items without an embedding, and why.
    """

    embeddings: Path
    skipped: Path


@dataclass(frozen=True)
class Embedded:
    """What was written.

    Attributes
    ----------
    outcome : Outcome
    root : str, optional
        Folder that the paths of pictures are relative to.
    n_ignored : int
        Files of folders that are not pictures by their name.
    """

    outcome: Outcome
    root: str | None = None
    n_ignored: int = 0


def default_embedder(source: Source) -> str:
    """Name of the embedder for a source that no other is named for."""
    return DEFAULT_TEXTS if source.holds_texts else DEFAULT_PICTURES


def embed(
    source: Source, destination: Destination, embedder: Embedder, work: EmbeddingWork
) -> Embedded:
    """Embed pictures or texts and write them to a file.

    Parameters
    ----------
    source : Source
    destination : Destination
    embedder : Embedder
    work : EmbeddingWork

    Returns
    -------
    embedded : Embedded

    Raises
    ------
    SettingError
        When the embedder is not for this kind of source.
    EmbeddingError
        When not one item can be embedded; the skipped items are written.
    """
    if isinstance(embedder, PictureEmbedder):
        return _embed_pictures(list_source(source), destination, embedder, work)
    return _embed_texts(read_source(source), destination, embedder, work)


def list_source(source: Source) -> Listing:
    """Find the pictures of a source."""
    if source.holds_texts:
        raise SettingError(
            f"{source.paths[0]} is a table of texts, the embedder is for pictures; name one for "
            "texts, such as --embedder ngrams"
        )
    listing = list_pictures(source.paths)
    if not listing.names and not listing.skips:
        shown = ", ".join(map(str, source.paths))
        hidden = f" ({listing.n_ignored:,} files of other kinds)" if listing.n_ignored else ""
        raise FileFormatError(f"{shown} holds no pictures{hidden}, expected some; check the path")
    return listing


def read_source(source: Source) -> TextTable:
    """Read the texts of a source."""
    path = source.paths[0]
    if not path.exists():
        raise MissingFileError(f"{path} does not exist, expected a table of texts; check the path")
    if len(source.paths) > 1 or path.is_dir():
        raise SettingError(
            "an embedder of texts takes one table, got "
            f"{'a folder' if path.is_dir() else f'{len(source.paths)} paths'}; name one of "
            f"{', '.join(text_tables.SUFFIXES)}, or an embedder of pictures"
        )
    if path.suffix.lower() not in (*text_tables.SUFFIXES, *LIST_SUFFIXES):
        raise FileFormatError(
            f"{path} has the suffix {path.suffix or '(none)'!r}, expected one of "
            f"{', '.join((*text_tables.SUFFIXES, *LIST_SUFFIXES))}; convert or rename it"
        )
    return read_texts(path, source.text_column, source.id_column)


def _embed_pictures(
    listing: Listing, destination: Destination, embedder: PictureEmbedder, work: EmbeddingWork
) -> Embedded:
    with closing(EmbeddingCache(work.cache, cache_key(embedder))) as cache:
        outcome = embed_pictures(listing, embedder, work, cache)
        rows = picture_rows(listing, embedder, cache, outcome)
        _write(rows, outcome, destination, embedder, listing.root)
    return Embedded(outcome, listing.root, listing.n_ignored)


def _embed_texts(
    table: TextTable, destination: Destination, embedder: Embedder, work: EmbeddingWork
) -> Embedded:
    if isinstance(embedder, CorpusEmbedder) and table.texts:
        embedder.fit(table.texts)
    with closing(EmbeddingCache(work.cache, cache_key(embedder))) as cache:
        outcome = embed_texts(table, embedder, work, cache)
        _write(text_rows(table, embedder, cache, outcome), outcome, destination, embedder, None)
    return Embedded(outcome)


def _write(
    rows: Iterator[Row],
    outcome: Outcome,
    destination: Destination,
    embedder: Embedder,
    folder: str | None,
) -> None:
    """Write the rows, and then what was skipped on the way."""
    first = next(rows, None)
    if first is None:
        write_skipped(destination.skipped, outcome.skips)
        example = outcome.skips[0] if outcome.skips else None
        reason = f", such as {example.item!r}, which {example.reason}" if example else ""
        raise EmbeddingError(
            f"not one of {outcome.n_items:,} items could be embedded{reason}; the reasons are in "
            f"{destination.skipped}"
        )
    every = chain([first], rows)
    outcome.n_rows = write_rows(destination.embeddings, every, embedder, folder)
    write_skipped(destination.skipped, outcome.skips)
