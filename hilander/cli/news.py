"""What the options of ``hilander update`` say beside the new embeddings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.cli.known import find_own_review, read_pair_options, read_reviewed, read_reviews
from hilander.embeddings.partial_labels import encode_partly
from hilander.errors import FileFormatError
from hilander.io.files import EmbeddingFile, read_labels
from hilander.io.tables import read_column

if TYPE_CHECKING:
    from hilander.collection.collection import Collection
    from hilander.collection.known import News


def read_news(
    args: argparse.Namespace, collection: Collection, file: EmbeddingFile | None, remove: Any = None
) -> tuple[News, list[str]]:
    """What is newly known, and lines for the user.

    Parameters
    ----------
    args : Namespace of ``hilander update``
    collection : Collection
        Before the update.
    file : EmbeddingFile, optional
        The new embeddings.
    remove : ndarray of ids, optional

    Returns
    -------
    news : News
        Pairs of reviews are of items that are there after the update.
    lines : list of str
    """
    from hilander.collection.known import APART, TOGETHER, News

    lines: list[str] = []
    must, cannot = read_pair_options(args, lines)
    added = None if file is None else file.ids
    before = collection.ids.astype(str)
    names = [before if remove is None else np.setdiff1d(before, np.asarray(remove).astype(str))]
    if added is not None:
        names.append(np.asarray(added).astype(str))
    here = np.concatenate(names)
    others = read_reviews(args.review, here, lines)
    own = read_reviews(find_own_review(args, args.folder), here, lines)
    asked = {TOGETHER: args.together_column, APART: args.apart_column}
    said: dict[str, dict[str, Any]] = {TOGETHER: {}, APART: {}}
    for kind, chosen in asked.items():
        for name in chosen:
            if file is None:
                raise FileFormatError(f"--{kind}-column {name} needs a file of embeddings; give it")
            said[kind][name] = read_column(file.source, name)
    for kind, name in collection.known_columns():
        if file is not None and name not in said[kind]:
            try:
                said[kind][name] = read_column(file.source, name)
            except FileFormatError as error:
                lines.append(f"{kind} column {name}: unknown for the new items ({error})")
    labels = {} if args.known_labels is None else _read_labels(args.known_labels, here)
    news = News(
        must + others.must,
        cannot + others.cannot,
        said[TOGETHER],
        said[APART],
        labels,
        (own.must, own.cannot),
        read_reviewed(args, args.folder),
    )
    return news, lines


def _read_labels(path: Path, here: npt.NDArray[Any]) -> dict[str, Any]:
    """Known labels of items, by id."""
    labels = np.asarray(read_labels(path, ids=here, may_miss=True))
    known = np.flatnonzero(encode_partly(labels, len(labels))[0] >= 0)
    return dict(zip(here[known].tolist(), labels[known].tolist(), strict=True))
