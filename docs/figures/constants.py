"""Write docs/reference/constants.md: the hand-set numbers of the default method in one table.

A constant is an UPPER_CASE name of a module that holds a number. Its meaning is the comment beside
it or above it; consecutive constants share the comment above them. Run it from the repository:
``python docs/figures/constants.py``.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "reference" / "constants.md"
# What the default method runs, in the order of the data.
PLACES = (
    "embeddings",
    "synthetic/episodes.py",
    "synthetic/identity_bootstrap.py",
    "synthetic/member_scatter.py",
    "synthetic/training_episodes.py",
    "training/evidence",
    "training/map_choice.py",
    "training/metric.py",
    "training/set_preparation.py",
    "training/split.py",
    "knn",
    "linkage/evidence",
    "graph/same_identity.py",
    "hierarchy/decoding",
    "hierarchy/levels.py",
    "hierarchy/rules.py",
    "hierarchy/merge_tree.py",
)
HEAD = """# Hand-set numbers

Every number of the default method that was set by hand and has a name, with its unit or reason.
`python docs/figures/constants.py` draws the page from the code. Settings with a default are in the
[Python reference](python.md).
"""


def describe_constants() -> str:
    """The page: one table for each module that has constants."""
    parts = [HEAD]
    for place in PLACES:
        path = ROOT / "hilander" / place
        for module in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if module.name == "registry.py":
                continue  # edge features have a page of their own
            rows = list(read_constants(module.read_text(encoding="utf-8")))
            if rows:
                name = module.relative_to(ROOT).as_posix()
                lines = [f"| `{names}` | {value} | {meaning} |" for names, value, meaning in rows]
                table = "\n".join(["| name | value | meaning |", "|---|---|---|", *lines])
                parts.append(f"## {name}\n\n{table}\n")
    return "\n".join(parts)


def read_constants(source: str) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of each constant that holds a number."""
    comments = read_comments(source)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = (one for target in targets for one in ast.walk(target))
        names = [one.id for one in parts if isinstance(one, ast.Name)]
        if not all(name.strip("_").isupper() for name in names) or not holds_number(node.value):
            continue
        value = " ".join(ast.unparse(node.value).split()).replace("|", "\\|")
        beside = comments.get(node.end_lineno or node.lineno, "")
        meaning = beside or comment_above(node.lineno, comments, lines)
        yield ", ".join(names), f"`{value}`" if len(value) <= 60 else "see the code", meaning


def holds_number(value: ast.expr) -> bool:
    """Whether an expression has a numeric literal."""
    found = (one.value for one in ast.walk(value) if isinstance(one, ast.Constant))
    return any(isinstance(one, int | float) and not isinstance(one, bool) for one in found)


def read_comments(source: str) -> dict[int, str]:
    """Text of each comment by its line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = ((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)
    return {line: clean(text) for line, text in found}


def clean(comment: str) -> str:
    """A comment as the text of a table cell."""
    text = comment.lstrip("# ").replace("|", "\\|")
    return "" if text.startswith(("fmt:", "type:", "noqa")) else text


def comment_above(line: int, comments: dict[int, str], lines: list[str]) -> str:
    """The comment lines above the group of consecutive constants that a line belongs to."""
    block: list[str] = []
    line -= 1
    while lines[line - 1].strip() and not lines[line - 1].lstrip().startswith("#"):
        line -= 1
    while line in comments and lines[line - 1].lstrip().startswith("#"):
        block.insert(0, comments[line])
        line -= 1
    return " ".join(part for part in block if part)


if __name__ == "__main__":
    TARGET.write_text(describe_constants(), encoding="utf-8")
