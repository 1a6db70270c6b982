"""Find the separator of a text table."""

import re
from collections.abc import Sequence
from pathlib import Path

SEPARATORS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]*,[0-9]+([eE][-+]?[0-9]+)?\s*")


def read_first_line(path: Path) -> str:
    """The first line that is not empty; "" if there is none or the file cannot be read.

    The function that reads the whole file reports what is wrong with it.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            return next((line.strip("\r\n") for line in stream if line.strip()), "")
    except OSError:
        return ""


def default_separator(path: Path) -> str:
    """The separator that the suffix of a file implies: a tab for ``.tsv``, else a comma."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def find_separator(path: Path, line: str) -> str:
    """Find the separator of a table by its first line.

    Parameters
    ----------
    path : Path
        Its suffix implies the default, which is used unless another separator occurs more often or
        separates numbers with decimal commas.
    line : str

    Returns
    -------
    separator : str
        One of `SEPARATORS`, or a space if spaces separate numbers and no other separator occurs.
    """
    default = default_separator(path)
    bare = _QUOTED.sub("", line)
    present = [one for one in (default, *SEPARATORS) if one in bare]
    if not present:
        cells = bare.split(" ")
        return " " if len(cells) > 1 and all(map(is_number, cells)) else default
    for one in present:
        if one != "," and has_decimal_commas(bare.split(one)):
            return one
    return max(present, key=bare.count)  # of equally frequent ones the first, which is the default


def has_decimal_commas(cells: Sequence[str]) -> bool:
    """Whether all cells are numbers, some of them with a decimal comma such as 0,5."""
    filled = [cell for cell in cells if cell.strip()]
    are_numbers = all(is_number(cell) or is_decimal_comma(cell) for cell in filled)
    return are_numbers and any(map(is_decimal_comma, filled))


def is_decimal_comma(text: str) -> bool:
    """Whether a cell is a number with a decimal comma."""
    return _DECIMAL_COMMA.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Whether a cell is a number in Python notation, without underscores."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
