"""Rows of results in JSONL files. Each row names its commit, machine, data and seed."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# Names in rows that were measured before version 0.2, and the present ones.
RENAMED = {"in the box": "pretrained", "advised": "with prior"}


def find_data() -> Path:
    """Folder of the real embeddings: HILANDER_DATA, or a folder beside the repository."""
    return Path(os.environ.get("HILANDER_DATA", ROOT.parent / "shared" / "data"))


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Append one row. Numbers that JSON cannot hold (NaN, infinity) become null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {key: None if _is_odd(value) else value for key, value in row.items()}
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(plain, sort_keys=True, allow_nan=False) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file, in order, with the present names; none if there is no file."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_rename_values(json.loads(line)) for line in lines if line]


def describe_circumstances() -> dict[str, Any]:
    """Commit, date, machine and torch version, which every row holds."""
    import torch

    return {
        "commit": current_commit(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": describe_machine(),
        "torch": torch.__version__,
    }


def current_commit() -> str:
    """The present commit, with a plus if files of the package differ from it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", "hilander") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe_machine() -> str:
    """Processor and cores, without the machine's name."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores"


def hash_file(path: Path) -> str:
    """The first 12 digits of a file's SHA-256."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:12]


def put_block(text: str, marks: tuple[str, str], content: str) -> str:
    """Replace the content between two marks of a page.

    Parameters
    ----------
    text : str
        The page.
    marks : tuple of two str
    content : str

    Returns
    -------
    text : str
    """
    begin, end = marks
    head, _, rest = text.partition(begin)
    return f"{head}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _rename_values(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the present names of its method and variant."""
    old = {key: row[key] for key in ("method", "variant") if key in row}
    return row | {key: RENAMED.get(value, value) for key, value in old.items()}


def _is_odd(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
