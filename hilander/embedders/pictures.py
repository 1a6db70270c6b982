"""Embed pictures: workers read and prepare them, the embedder gets batches, the cache keeps all."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hilander.embedders.batches import Batches, refusal
from hilander.embedders.cache import EmbeddingCache, Result, cache_key
from hilander.embedders.listing import Listing, stat_file
from hilander.embedders.progress import Progress
from hilander.embedders.protocol import PictureEmbedder
from hilander.embedders.reading import ReadPicture
from hilander.embedders.rows import Row
from hilander.embedders.skipping import Skip
from hilander.embedders.work import EmbeddingWork, Outcome
from hilander.embedders.workers import ReadingWorkers
from hilander.io.item_columns import PATH, PHOTO
from hilander.io.paths import encode_name

_GONE = "was removed or changed while it was embedded"


def embed_pictures(
    listing: Listing, embedder: PictureEmbedder, work: EmbeddingWork, cache: EmbeddingCache
) -> Outcome:
    """Embed every picture that the cache does not have.

    Parameters
    ----------
    listing : Listing
    embedder : PictureEmbedder
    work : EmbeddingWork
    cache : EmbeddingCache
        Gets the results.

    Returns
    -------
    outcome : Outcome
    """
    outcome = Outcome(len(listing.names), skips=list(listing.skips))
    paths = (os.path.join(listing.root, name) for name in listing.names)
    new = [path for path in paths if not _is_known(path, cache)]
    workers = ReadingWorkers(embedder.prepare, work.cache, cache_key(embedder), work.n_workers)
    batches = Batches(embedder, cache, work.batch_size)
    with Progress(len(new), "pictures", shown=work.progress) as progress:
        for picture in workers.read(new):
            _take(picture, batches, outcome)
            progress.step()
        batches.finish()
    outcome.seconds = progress.seconds
    return outcome


def picture_rows(
    listing: Listing, embedder: PictureEmbedder, cache: EmbeddingCache, outcome: Outcome
) -> Iterator[Row]:
    """Rows of the output, in the order of the listing. Adds what has none to `outcome.skips`.

    Parameters
    ----------
    listing : Listing
    embedder : PictureEmbedder
    cache : EmbeddingCache
    outcome : Outcome
        As `embed_pictures` gave it.

    Yields
    ------
    row : Row
        One for each piece.
    """
    for name in listing.names:
        path, text = os.path.join(listing.root, name), encode_name(name)
        reason: str | None = outcome.reasons.get(path)
        result = None if reason is not None else _find_result(path, cache)
        if result is None or result.reason is not None:
            reason = reason or (_GONE if result is None else result.reason)
            outcome.skips.append(Skip(text, str(reason)))
            continue
        for number, vector in enumerate(result.features):
            if embedder.kind == "face":
                facts = {PATH: text, PHOTO: text, **result.facts[number]}
                yield Row(f"{text}#{number}", vector, facts)
            else:
                yield Row(text, vector, {PATH: text, **result.facts[number]})


def _find_result(path: str, cache: EmbeddingCache) -> Result | None:
    facts = stat_file(path)
    digest = None if facts is None else cache.digest_of(path, facts)
    return None if digest is None else cache.get(digest)


def _is_known(path: str, cache: EmbeddingCache) -> bool:
    facts = stat_file(path)
    digest = None if facts is None else cache.digest_of(path, facts)
    return digest is not None and cache.has(digest)


def _take(picture: ReadPicture, batches: Batches, outcome: Outcome) -> None:
    """Put a read picture into a batch, or note why it cannot be embedded."""
    if picture.digest is not None and picture.facts is not None:
        batches.cache.add_file(picture.path, picture.facts, picture.digest)
    if picture.digest is not None and picture.pieces is not None:
        batches.add(picture.digest, picture.pieces)
        outcome.n_new += 1
    elif picture.digest is not None and picture.reason is not None and picture.lasting:
        batches.cache.add(picture.digest, refusal(picture.reason))
    elif picture.reason is not None:
        outcome.reasons[picture.path] = picture.reason
