"""Ids of added items: checked against those of a collection, or numbered on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray
from hilander.collection.storage import Stored
from hilander.errors import LabelError


def new_ids(
    stored: Stored, kept: BoolArray, given: Any, n_added: int
) -> tuple[npt.NDArray[Any], int]:
    """Ids of all items after an update, and the next number for an item."""
    left, next_row = stored.ids[kept], stored.notes.next_row
    kind = stored.ids.dtype.kind if len(stored.ids) else None
    if given is None:
        if kind == "U":
            raise LabelError("the items of the collection have text as ids; give ids of the new")
        largest = int(stored.ids.max(initial=-1)) + 1
        ids: npt.NDArray[Any] = max(next_row, largest) + np.arange(n_added)
    else:
        ids = as_ids(np.asarray(given), kind)
    if ids.shape != (n_added,):
        raise LabelError(f"got ids of shape {ids.shape} for {n_added} rows; give one each")
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < n_added:
        twice = values[counts > 1][0]
        raise LabelError(f"the id {twice.item()!r} is given to several rows; give each row its own")
    known = values[np.isin(values, left)]
    if len(known):
        raise LabelError(
            f"the collection has an item {known[0].item()!r} already ({len(known):,} of "
            f"{n_added:,} ids are in it); remove it first, or in the same update"
        )
    if ids.dtype.kind in "iu":
        next_row = max(next_row, int(ids.max()) + 1)
    return (np.concatenate([left, ids]) if kind is not None else ids), next_row


def as_ids(given: npt.NDArray[Any], kind: str | None) -> npt.NDArray[Any]:
    """Ids as int64 or text; `kind` is that of the collection's ids."""
    if given.dtype.kind == "O":
        given = given.astype(str)
    is_text = given.dtype.kind == "U"
    if kind is not None and kind != "U" and is_text:
        try:
            return given.astype(np.int64)
        except ValueError:
            example = given[0] if len(given) else ""
            raise LabelError(
                f"the ids of the collection are whole numbers, got {example!r}; give such ids"
            ) from None
    if kind == "U":
        return given.astype(str)
    if not is_text and given.dtype.kind not in "iu":
        raise LabelError(f"ids are of type {given.dtype}; give whole numbers or text")
    return given if is_text else given.astype(np.int64)
