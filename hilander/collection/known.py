"""What is known of the items of a collection, kept so that an update holds it too.

The file `known.npz` has what was given with options or arguments, without what the review of the
run says, which is read anew each time: the constraints, the values of the columns that they came
from, so that new items are compared with old ones, and the names of the known labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.collection.cluster_ids import Reviewed
from hilander.embeddings.partial_labels import encode_partly
from hilander.errors import FileFormatError, LabelError
from hilander.hierarchy.constraints.building import (
    Knowledge,
    build_constraints,
    join_constraints,
)
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.io.digests import FileList

KNOWN_FILE = "known.npz"
TOGETHER, APART = "together", "apart"
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Column:
    """A column whose equal values bring items together, or hold them apart.

    Parameters
    ----------
    kind : {"together", "apart"}
    name : str
    codes : ndarray of shape (n_items,)
        Number of the value of each item; -1 for none.
    values : list of str
    """

    kind: str
    name: str
    codes: IntArray
    values: list[str]

    @classmethod
    def of_values(cls, kind: str, name: str, values: npt.ArrayLike, n_items: int) -> Column:
        """The column of some values; empty ones, None, NaN and -1 mean none."""
        codes, found = encode_values(values, n_items, name)
        return cls(kind, name, codes, found)

    def carry(self, kept: BoolArray, added: Column) -> Column:
        """The column of the items that stay, and of added ones."""
        values, codes = join_values(self.values, added)
        return replace(self, codes=np.concatenate([self.codes[kept], codes]), values=values)


@dataclass(frozen=True, eq=False)
class News:
    """What is newly known with an update.

    Parameters
    ----------
    must_link, cannot_link : sequence of pairs of ids, as text
        Of items of the collection after the update.
    together, apart : mapping of str to array-like of shape (n_added,)
        Columns of the added items. A value means the same as that value of the same column of
        earlier items.
    labels : mapping of id, as text, to label
        Known identities, by their names.
    review : tuple of (must, cannot) pairs of ids, optional
        Decisions of the review of the collection, in place of those that held so far. They are not
        kept, since a review may change. A decision that contradicts the rest is left out.
    clusters : Reviewed, optional
        The clusters as reviewed: their ids go on, and those of different names stay apart.
    """

    must_link: Sequence[Pair] = ()
    cannot_link: Sequence[Pair] = ()
    together: Mapping[str, Any] = field(default_factory=dict)
    apart: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    review: tuple[Sequence[Pair], Sequence[Pair]] | None = None
    clusters: Reviewed | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is said."""
        pairs = (self.must_link, self.cannot_link, *(self.review or ()))
        return not (any(map(len, pairs)) or self.together or self.apart or self.labels)


@dataclass(frozen=True, eq=False)
class Known:
    """What was given beforehand of the items of a collection.

    Parameters
    ----------
    constraints : Constraints of n_items items
        The numbers of known labels are places in `labels`.
    columns : list of Column of n_items items
    labels : list of str
        Names of the known labels.
    """

    constraints: Constraints
    columns: list[Column] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is known."""
        return self.constraints.is_empty and not self.columns

    @staticmethod
    def new_rows(kept: BoolArray) -> IntArray:
        """Row of each item after others were removed; -1 for these."""
        return np.where(kept, np.cumsum(kept) - 1, -1)

    def extend(self, kept: BoolArray, news: News, names: Sequence[str]) -> Known:
        """What is known after an update.

        Parameters
        ----------
        kept : ndarray of shape (n_items,), bool
            Items that stay.
        news : News
        names : sequence of str
            Ids after the update: of those that stay, then of the added ones.

        Raises
        ------
        LabelError
            When what is new contradicts itself or what was known, with the shortest chain.
        """
        n_kept, n_items = int(kept.sum()), len(names)
        former = self.constraints.renumber(self.new_rows(kept), n_items)
        columns = self._extend_columns(kept, n_items - n_kept, news)
        codes: dict[str, list[IntArray]] = {TOGETHER: [], APART: []}
        for column in columns:
            said_now = np.isin(column.codes, column.codes[n_kept:])  # values of an added item
            codes[column.kind].append(np.where(said_now, column.codes, -1))
        known, labels = self._extend_labels(news.labels, names)
        knowledge = Knowledge(
            news.must_link, news.cannot_link, codes[TOGETHER], codes[APART], known
        )
        now = build_constraints(n_items, knowledge, names)
        return Known(join_constraints([former, now], names), columns, labels)

    def _extend_columns(self, kept: BoolArray, n_added: int, news: News) -> list[Column]:
        said = {TOGETHER: dict(news.together), APART: dict(news.apart)}
        columns = []
        for column in self.columns:
            values = said[column.kind].pop(column.name, np.full(n_added, -1))
            columns.append(
                column.carry(kept, Column.of_values(column.kind, column.name, values, n_added))
            )
        nothing = np.full(int(kept.sum()), -1)
        for kind, rest in said.items():
            for name, values in rest.items():
                one = Column.of_values(kind, name, values, n_added)
                columns.append(replace(one, codes=np.concatenate([nothing, one.codes])))
        return columns

    def _extend_labels(
        self, said: Mapping[str, Any], names: Sequence[str]
    ) -> tuple[IntArray, list[str]]:
        """Newly known label of each item, shape (n_items,), and the names of all labels."""
        known = np.full(len(names), -1)
        if not said:
            return known, self.labels
        if (self.constraints.known >= 0).any() and not self.labels:
            raise LabelError(
                "the known labels of this run have no names, so others cannot be compared with "
                "them; run `hilander cluster` again with all of them"
            )
        row_of = {name: row for row, name in enumerate(names)}
        missing = next((name for name in said if name not in row_of), None)
        if missing is not None:
            raise LabelError(f"a known label is given to {missing!r}, which is no item; drop it")
        rows = np.array([row_of[name] for name in said], dtype=np.int64)
        codes, values = encode_values(list(said.values()), len(rows), "label")
        labels, codes = join_values(self.labels, Column("", "label", codes, values))
        known[rows] = codes
        return known, labels

    def save(self, folder: Path) -> None:
        """Write it into an open run folder; nothing if nothing is known."""
        if self.is_nothing:
            return
        arrays = self.constraints.to_arrays() | {"labels": np.array(self.labels, dtype=str)}
        for column in self.columns:
            place = f"{column.kind}/{column.name}"
            arrays[f"codes/{place}"] = column.codes
            arrays[f"values/{place}"] = np.array(column.values, dtype=str)
        np.savez(folder / KNOWN_FILE, **arrays)

    @classmethod
    def load(cls, files: FileList, n_items: int) -> Known:
        """Read it from a run folder. A run of an earlier version has its constraints alone."""
        if not (files.folder / KNOWN_FILE).is_file():
            held = Constraints.load(files)
            return cls(Constraints.none(n_items) if held is None else held)
        path = files.check(KNOWN_FILE)
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                columns = []
                for key in arrays.files:
                    if key.startswith("codes/"):
                        _, kind, name = key.split("/", 2)
                        values = arrays[f"values/{kind}/{name}"].tolist()
                        columns.append(Column(kind, name, arrays[key], values))
                constraints = Constraints.of_arrays(arrays)
                return cls(constraints, columns, arrays["labels"].tolist())
        except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
            raise FileFormatError(
                f"{path} is damaged ({error or type(error).__name__}); run `hilander cluster` again"
            ) from error


def hold_review(
    given: Constraints, news: News, names: Sequence[str]
) -> tuple[Constraints, list[str]]:
    """Constraints that hold the decisions of a review too, as far as they fit.

    Parameters
    ----------
    given : Constraints of n_items items
    news : News
    names : sequence of str
        Ids of the items. Decisions on others are passed over.

    Returns
    -------
    constraints : Constraints of n_items items
    conflicts : list of str
        Decisions that contradict what was given or an earlier decision, which do not hold.
    """
    held, conflicts = _hold_pairs(given, news, names)
    here = set(names)
    heads = [] if news.clusters is None else [one for one in news.clusters.named if one in here]
    chosen: list[str] = []
    while heads:
        hold_first = partial(_add_apart, held, chosen, heads, names)
        fitting, held = _longest_fitting(held, len(heads), hold_first)
        chosen += heads[:fitting]
        conflicts += [
            f"{one} has another name than an item that it belongs with"
            for one in heads[fitting : fitting + 1]
        ]
        heads = heads[fitting + 1 :]
    return held, conflicts


def _hold_pairs(
    given: Constraints, news: News, names: Sequence[str]
) -> tuple[Constraints, list[str]]:
    here, review = set(names), news.review or ((), ())
    said = [
        (kind, pair)
        for kind, pairs in zip(("must_link", "cannot_link"), review, strict=True)
        for pair in pairs
        if pair[0] in here and pair[1] in here
    ]
    conflicts = []
    held = given
    while said:
        fitting, held = _longest_fitting(held, len(said), partial(_add_pairs, held, said, names))
        if fitting < len(said):
            kind, (left, right) = said[fitting]
            verdict = "the same" if kind == "must_link" else "different"
            conflicts.append(f"{left} and {right} were reviewed as {verdict}")
        said = said[fitting + 1 :]
    return held, conflicts


def _longest_fitting(
    held: Constraints, n_said: int, hold_first: Callable[[int], Constraints]
) -> tuple[int, Constraints]:
    """How many decisions, from the first, contradict nothing; and the constraints with them.

    Parameters
    ----------
    held : Constraints
        Without any of the decisions.
    n_said : int
    hold_first : callable number -> Constraints
        The constraints with so many decisions; LabelError if they contradict something.
    """
    fitting, best, step = 0, held, n_said
    while step:
        if fitting + step <= n_said:
            try:
                best = hold_first(fitting + step)
                fitting += step
                continue
            except LabelError:
                pass
        step //= 2
    return fitting, best


def _add_apart(
    held: Constraints, chosen: list[str], heads: list[str], names: Sequence[str], count: int
) -> Constraints:
    """Constraints that hold the chosen items and the first of others apart."""
    apart = {*chosen, *heads[:count]}
    column = np.array([0 if name in apart else -1 for name in names])
    group = build_constraints(len(names), Knowledge(apart=[column]), names)
    return join_constraints([held, group], names)


def _add_pairs(
    held: Constraints, said: list[tuple[str, Pair]], names: Sequence[str], count: int
) -> Constraints:
    """Constraints that hold the first decisions too."""
    pairs = {
        one: [pair for kind, pair in said[:count] if kind == one]
        for one in ("must_link", "cannot_link")
    }
    return join_constraints([held, build_constraints(len(names), Knowledge(**pairs), names)], names)


def encode_values(values: npt.ArrayLike, n_items: int, name: str) -> tuple[IntArray, list[str]]:
    """Number of each value, -1 for none, and the values as text.

    Parameters
    ----------
    values : array-like of shape (n_items,)
    n_items : int
    name : str
        For errors.
    """
    column = np.asarray(values)
    if column.shape != (n_items,):
        raise LabelError(
            f"column {name!r} has the shape {column.shape}, expected one value for each of the "
            f"{n_items:,} embeddings; name another column"
        )
    if not n_items:
        return np.arange(0), []
    codes = encode_partly(column, n_items)[0]
    found, first = np.unique(codes, return_index=True)
    return codes, [_as_text(column[row]) for row in first[found >= 0].tolist()]


def join_values(values: Sequence[str], added: Column) -> tuple[list[str], IntArray]:
    """All values, and the number of each item's among them, of an added column."""
    number = {value: place for place, value in enumerate(values)}
    places = [number.setdefault(value, len(number)) for value in added.values]
    return list(number), np.array([*places, -1], dtype=np.int64)[added.codes]


def _as_text(value: Any) -> str:
    """A value as text; a whole number is the same in every type, as nulls make it a float."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
