"""Option names and values of version 0.1. They work until version 0.3, with a warning."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

# Attribute of the parsed arguments -> how the user writes it, and its old values with today's.
_MODEL_VALUES = {"box": "pretrained"}
_TRAINING_VALUES = {"box": "pretrained", "nothing": "none"}
OLD_VALUES: dict[str, tuple[str, dict[str, str]]] = {
    "start": ("--start", _TRAINING_VALUES),
    "prior": ("--prior", _TRAINING_VALUES),
    "model": ("--model", _MODEL_VALUES),
    "path": ("hilander info", _MODEL_VALUES),
}


def add_old_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hilander train` that have another name now; --help does not show them."""
    parser.add_argument("--adviser", help=argparse.SUPPRESS)


def rename_old_names(args: argparse.Namespace) -> None:
    """Replace old names and values in the parsed arguments by today's, each with a warning."""
    adviser = getattr(args, "adviser", None)
    if adviser is not None:
        args.prior = _today("prior", adviser)
        _warn(f"--adviser {adviser}", f"--prior {args.prior}")
    for name, (written, _) in OLD_VALUES.items():
        value = getattr(args, name, None)
        if isinstance(value, str) and (today := _today(name, value)) != value:
            _warn(f"{written} {value}", f"{written} {today}")
            setattr(args, name, today)


def _today(name: str, value: str) -> str:
    """Today's word for a value; a folder of the old name is meant as that folder."""
    return value if Path(value).exists() else OLD_VALUES[name][1].get(value, value)


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"`{old}` is now `{new}`; the old name will be removed in version 0.3",
        FutureWarning,
        stacklevel=3,
    )
