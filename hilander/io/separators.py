"""What stands between the cells of a text table."""

import re
from collections.abc import Sequence
from pathlib import Path

SEPARATORS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?\s*")


def read_first_line(path: Path) -> str:
    """The first line that is not empty; empty where there is none, or none that can be read.

    What is wrong with a file is told by who reads it whole.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            return next((line.strip("\r\n") for line in stream if line.strip()), "")
    except OSError:
        return ""


def usual_separator(path: Path) -> str:
    """What the suffix of a file promises: a tab for ``.tsv``, else a comma."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def find_separator(path: Path, line: str) -> str:
    """Find what separates the cells of a table, by its first line.

    Parameters
    ----------
    path : Path
        Its suffix says what is usual, and that is taken unless another one is there more often or
        stands between numbers with decimal commas.
    line : str

    Returns
    -------
    separator : str
        One of `SEPARATORS`, or a space where it stands between numbers and no other one does.
    """
    usual = usual_separator(path)
    bare = _QUOTED.sub("", line)
    there = [one for one in (usual, *SEPARATORS) if one in bare]
    if not there:
        cells = bare.split(" ")
        return " " if len(cells) > 1 and all(map(is_number, cells)) else usual
    for one in there:
        if one != "," and has_decimal_commas(bare.split(one)):
            return one
    return max(there, key=bare.count)  # of equals the first, which is the usual one


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether cells are all numbers, some of them such as 0,5."""
    filled = [cell for cell in cells if cell.strip()]
    are_numbers = all(is_number(cell) or is_decimal_comma(cell) for cell in filled)
    return are_numbers and any(map(is_decimal_comma, filled))


def is_decimal_comma(text: str) -> bool:
    """Whether a cell is a number with a comma where a point is expected."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether a cell is a number as Python writes it, without underscores."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
