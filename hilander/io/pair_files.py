"""Files of pairs: ids of two points in each row, and perhaps whether they are one identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError
from hilander.io.tables import read_table

Pair = tuple[str, str]
_FIRST = ("id_a", "id1", "id_1", "left")
_SECOND = ("id_b", "id2", "id_2", "right")
_LINK = ("link", "same", "verdict")
_MUST = ("must", "must-link", "same", "together", "1", "true", "yes")
_CANNOT = ("cannot", "cannot-link", "different", "apart", "0", "false", "no")
# The explorer writes a quote before text that a spreadsheet would evaluate.
_ESCAPED = ("'=", "'+", "'-", "'@", "'\t", "'\r")


@dataclass(frozen=True)
class PairFile:
    """Pairs of ids, as text.

    Parameters
    ----------
    must, cannot : list of (str, str)
        Pairs of a file with a column that says which.
    plain : list of (str, str)
        Pairs of a file without one.
    """

    must: list[Pair] = field(default_factory=list)
    cannot: list[Pair] = field(default_factory=list)
    plain: list[Pair] = field(default_factory=list)


def read_pairs(path: Path) -> PairFile:
    """Read pairs, such as those that the explorer exports.

    Parameters
    ----------
    path : Path
        As for `hilander.io.tables.read_table`. Two columns of ids, named ``id_a`` and ``id_b`` or
        not named at all, and perhaps a column ``link`` of ``must`` and ``cannot``.
    """
    rows = read_table(path)
    if not rows:
        return PairFile()
    names = [str(cell).strip().lower() for cell in rows[0]]
    has_header = any(name in (*_FIRST, *_SECOND) for name in names)
    first, second, link = _places(names) if has_header else (0, 1, 2 if len(names) > 2 else None)
    found = PairFile()
    for number, row in enumerate(rows[1:] if has_header else rows, start=1):
        if max(first, second, link or 0) >= len(row):
            raise FileFormatError(
                f"{path}: pair {number} has {len(row)} columns, expected two ids; check that row"
            )
        pair = _to_id(row[first]), _to_id(row[second])
        if link is None:
            found.plain.append(pair)
        else:
            _sort_in(found, pair, row[link], f"{path}: pair {number}")
    return found


def _places(names: list[str]) -> tuple[int, int, int | None]:
    def place(known: tuple[str, ...]) -> int | None:
        return next((names.index(name) for name in known if name in names), None)

    first, second = place(_FIRST), place(_SECOND)
    if first is None or second is None:
        raise FileFormatError(
            f"a file of pairs has the columns {', '.join(names)}, expected id_a and id_b; rename "
            "them"
        )
    return first, second, place(_LINK)


def _to_id(value: Any) -> str:
    text = str(value)
    return text[1:] if text.startswith(_ESCAPED) else text


def _sort_in(found: PairFile, pair: Pair, link: Any, where: str) -> None:
    word = str(link).strip().lower()
    if word in _MUST:
        found.must.append(pair)
    elif word in _CANNOT:
        found.cannot.append(pair)
    else:
        raise FileFormatError(f"{where} has the link {link!r}, expected must or cannot; correct it")
