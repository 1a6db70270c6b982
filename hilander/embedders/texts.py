"""Embed texts: each different text once, the cache keeps all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from hilander.arrays.rows import FloatArray
from hilander.embedders.batches import embed_all, make_result
from hilander.embedders.cache import EmbeddingCache
from hilander.embedders.progress import Progress
from hilander.embedders.protocol import CorpusEmbedder, Embedder
from hilander.embedders.rows import Row
from hilander.embedders.skipping import Skip
from hilander.embedders.text_tables import TextTable
from hilander.embedders.work import EmbeddingWork, Outcome
from hilander.io.item_columns import TEXT


def embed_texts(
    table: TextTable, embedder: Embedder, work: EmbeddingWork, cache: EmbeddingCache
) -> Outcome:
    """Embed every text that the cache does not have.

    Parameters
    ----------
    table : TextTable
    embedder : Embedder
        One that learns from the texts must have learnt; its results are not cached.
    work : EmbeddingWork
    cache : EmbeddingCache

    Returns
    -------
    outcome : Outcome
    """
    outcome = Outcome(len(table.texts) + len(table.skips), skips=list(table.skips))
    if isinstance(embedder, CorpusEmbedder):
        outcome.n_new = len(table.texts)
        return outcome
    # Texts of similar length go together: a batch is as long as its longest.
    new = sorted({text for text in table.texts if not cache.has(digest_text(text))}, key=_by_length)
    with Progress(len(new), "texts", shown=work.progress) as progress:
        for start in range(0, len(new), work.batch_size):
            batch = new[start : start + work.batch_size]
            features = embed_all(embedder, batch, work.batch_size)
            for number, text in enumerate(batch):
                cache.add(digest_text(text), make_result(features[number : number + 1]))
            cache.commit()
            progress.step(len(batch))
    outcome.n_new = len(new)
    outcome.seconds = progress.seconds
    return outcome


def text_rows(
    table: TextTable, embedder: Embedder, cache: EmbeddingCache, outcome: Outcome
) -> Iterator[Row]:
    """Rows of the output, in the order of the table. Adds what has none to `outcome.skips`.

    Parameters
    ----------
    table : TextTable
    embedder : Embedder
    cache : EmbeddingCache
    outcome : Outcome

    Yields
    ------
    row : Row
    """
    vectors = _embed_now(table, embedder) if isinstance(embedder, CorpusEmbedder) else None
    for name, text in zip(table.ids, table.texts, strict=True):
        if vectors is not None:
            yield Row(name, next(vectors), {TEXT: text})
            continue
        result = cache.get(digest_text(text))
        if result is None or result.reason is not None:
            reason = "was not embedded" if result is None else str(result.reason)
            outcome.skips.append(Skip(name, reason))
        else:
            yield Row(name, result.features[0], {TEXT: text})


def digest_text(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _embed_now(table: TextTable, embedder: Embedder) -> Iterator[FloatArray]:
    step = 1024
    for start in range(0, len(table.texts), step):
        yield from embed_all(embedder, table.texts[start : start + step], step)


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text
