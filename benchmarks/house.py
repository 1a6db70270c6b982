"""Size and structure of the package, counted from a source tree.

    python -m benchmarks.house [TREE ...]

Each TREE is a folder that holds the package ``hilander``; the default is this repository. The
command prints a Markdown table with a column for each tree. The rules of counting:

- A module belongs to the default method if one of its functions runs during ``HiLander().fit`` and
  ``cluster`` on a small synthetic set, traced in a process of its own. Modules of the command line
  and of file formats are left out, and so are those that hold constants and types only. It is its
  own if no function of it runs when the paper's method does the same.
- A line of code is not blank, no comment and no part of a docstring.
- A hand-set number is a numeric literal other than 0, 1, 2 and 0.5, without its sign. It is named
  if it stands in an UPPER_CASE constant of the module, a default if it is the default of a
  parameter or of a field, and unnamed otherwise.
- A branch on the method compares something called ``method`` with the name of one, or asks by
  ``isinstance`` for the network, plan or learning settings of one method.
- A training loop is a function that calls ``backward``.
- A duplicate is a pair of places in two files that share at least six lines of code in a row.
  Blank lines, comments and imports do not count.
- The body of a function has no signature and no docstring. ``self`` and ``cls`` are no parameters.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.rows import ROOT

PACKAGE = "hilander"
LEFT_OUT = ("cli", "commands", "io")  # folders that are no part of a method
NO_SETTING = (0, 1, 2, 0.5)  # numbers that need no reason
MOST_PARAMETERS = 6
DUPLICATE_LINES = 6
METHODS = ("evidence", "paper")
METHOD_TYPES = {
    "EvidenceNetwork", "EvidencePlan", "EvidenceLearning", "EvidenceSettings", "EvidenceMethod",
    "Lander", "TrainingPlan", "LearningSettings", "NetworkSettings", "PaperMethod",
}  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Runs in a process of its own, with the tree as the only place of the package.
TRACE = """
import contextlib, importlib, json, pkgutil, sys, threading, warnings
warnings.simplefilter("ignore")
import hilander
from hilander import HiLander
for one in pkgutil.walk_packages(hilander.__path__, "hilander."):
    if not one.name.endswith("__main__"):  # what runs at import is not traced
        with contextlib.suppress(ImportError):
            importlib.import_module(one.name)
try:
    make = importlib.import_module("hilander.synthetic.identities").make_identities
except ImportError:
    make = importlib.import_module("hilander.data").make_identities
X, y = make(n_identities=24, size=20, dim=16, seed=0)
other, _ = make(n_identities=24, size=20, dim=16, seed=1)
seen = set()
def note(frame, event, argument):
    if event == "call":
        seen.add(frame.f_code.co_filename)
model = HiLander(epochs=1, method=sys.argv[1])
threading.setprofile(note); sys.setprofile(note)
model.fit(X, y).cluster(other)
threading.setprofile(None); sys.setprofile(None)
print(json.dumps(sorted(seen)))
"""


@dataclass(frozen=True)
class Module:
    """A parsed module.

    Parameters
    ----------
    path : Path
        Relative to the package.
    lines : list of str
    tree : ast.Module
    """

    path: Path
    lines: list[str]
    tree: ast.Module

    def functions(self) -> Iterator[Function]:
        """Every function and method, also nested ones."""
        for node in ast.walk(self.tree):
            if isinstance(node, Function):
                yield node


def read_modules(tree: Path) -> list[Module]:
    """All modules of the package in a source tree."""
    package = tree / PACKAGE
    modules = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules.append(Module(path.relative_to(package), text.splitlines(), ast.parse(text)))
    return modules


def trace_method(tree: Path, method: str) -> set[Path]:
    """Modules of which a function runs when a method is fitted and clusters.

    Parameters
    ----------
    tree : Path
    method : {"evidence", "paper"}

    Returns
    -------
    paths : set of Path
        Relative to the package.
    """
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-P", "-c", TRACE, method]
    done = subprocess.run(
        command, cwd=tree, env=environment, check=True, capture_output=True, text=True
    )
    package = (tree / PACKAGE).resolve()
    found = [Path(name).resolve() for name in json.loads(done.stdout.splitlines()[-1])]
    paths = {path.relative_to(package) for path in found if path.is_relative_to(package)}
    return {path for path in paths if path.parts[0] not in LEFT_OUT}


def count_numbers(module: Module) -> dict[str, int]:
    """Hand-set numbers of a module: named, defaults, unnamed."""
    named = {id(node) for one in module.tree.body if _is_constant(one) for node in ast.walk(one)}
    defaults = {id(node) for value in _default_values(module) for node in ast.walk(value)}
    counts = {"named": 0, "defaults": 0, "unnamed": 0}
    for node in ast.walk(module.tree):
        if _is_setting(node):
            kind = "named" if id(node) in named else "defaults" if id(node) in defaults else ""
            counts[kind or "unnamed"] += 1
    return counts


def _is_setting(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return False
    return isinstance(node.value, int | float) and node.value not in NO_SETTING


def _is_constant(node: ast.stmt) -> bool:
    """Whether a statement assigns UPPER_CASE names."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    return bool(names) and all(name.upper() == name for name in names)


def _default_values(module: Module) -> Iterator[ast.expr]:
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            yield from node.args.defaults
            yield from (value for value in node.args.kw_defaults if value is not None)
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.AnnAssign) and one.value is not None:
                    yield one.value


def is_method_branch(node: ast.AST) -> bool:
    """Whether an expression asks which method it has."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        about_method = any(_last_name(side) == "method" for side in sides)
        return about_method and any(_names_method(side) for side in sides)
    if isinstance(node, ast.Call) and _last_name(node.func) == "isinstance":
        kinds = {_last_name(one) for one in ast.walk(node.args[1])}
        return bool(kinds & METHOD_TYPES)
    return False


def _names_method(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Constant) and one.value in METHODS for one in ast.walk(node))


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def trains(function: Function) -> bool:
    """Whether a function itself calls `backward`; nested functions count for themselves."""
    inner = {
        id(node)
        for nested in ast.walk(function)
        if isinstance(nested, Function) and nested is not function
        for node in ast.walk(nested)
    }
    return any(
        isinstance(node, ast.Call) and _last_name(node.func) == "backward" and id(node) not in inner
        for node in ast.walk(function)
    )


def body_lines(function: Function) -> int:
    """Lines of the body, without signature and docstring."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def count_parameters(function: Function) -> int:
    """Parameters of a function, without self and cls."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def count_duplicates(modules: Sequence[Module], least: int = DUPLICATE_LINES) -> int:
    """Pairs of places in two files that share at least `least` lines of code in a row."""
    codes = [list(_code_lines(module, _is_docstring, _is_import)) for module in modules]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for number, lines in enumerate(codes):
        for start in range(len(lines) - least + 1):
            places[tuple(lines[start : start + least])].append((number, start))
    # Windows of one shared run have the same two files and the same offset between them.
    runs: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for found in places.values():
        for at, (first, start) in enumerate(found):
            for second, other in found[at + 1 :]:
                if first != second:
                    runs[first, second, other - start].append(start)
    return sum(1 + _count_gaps(sorted(starts)) for starts in runs.values())


def _count_gaps(starts: Sequence[int]) -> int:
    return sum(after - before > 1 for before, after in pairwise(starts))


def count_code(module: Module) -> int:
    """Lines of code of a module."""
    return sum(1 for _ in _code_lines(module, _is_docstring))


def _code_lines(module: Module, *left_out: Callable[[ast.AST], bool]) -> Iterator[str]:
    """Lines without blank lines, comments and statements that are left out."""
    skipped: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.stmt) and any(is_left_out(node) for is_left_out in left_out):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(module.lines, start=1):
        plain = " ".join(line.split())
        if number not in skipped and plain and not plain.startswith("#"):
            yield plain


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_import(node: ast.AST) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def measure(tree: Path) -> dict[str, Any]:
    """The numbers of a source tree, by their title."""
    modules = read_modules(tree)
    used, by_paper = trace_method(tree, "evidence"), trace_method(tree, "paper")
    default = [module for module in modules if module.path in used]
    own = [module for module in default if module.path not in by_paper]
    numbers = [count_numbers(module) for module in default]
    functions = [(module, one) for module in modules for one in module.functions()]
    of_default = [one for module in default for one in module.functions()]
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    longest = max(functions, key=lambda pair: body_lines(pair[1]))
    total = {kind: sum(one[kind] for one in numbers) for kind in ("named", "defaults", "unnamed")}
    many = [one for _, one in functions if count_parameters(one) > MOST_PARAMETERS]
    many_of_default = [one for one in of_default if count_parameters(one) > MOST_PARAMETERS]
    return {
        "modules": len(modules),
        "lines of code": sum(map(count_code, modules)),
        "modules at the root": sum(len(module.path.parts) == 1 for module in modules),
        "modules of the default method": len(default),
        "– its own": len(own),
        "lines of code of the default method": sum(map(count_code, default)),
        "– of its own modules": sum(map(count_code, own)),
        "hand-set numbers of the default method": sum(total.values()),
        "– named constants": total["named"],
        "– defaults of parameters and fields": total["defaults"],
        "– unnamed": total["unnamed"],
        "branches on the method": sum(is_method_branch(node) for node in nodes),
        "training loops": sum(trains(one) for _, one in functions),
        "duplicates": count_duplicates(modules),
        "longest function body": f"{body_lines(longest[1])} (`{longest[1].name}`)",
        "longest function body of the default method": max(map(body_lines, of_default)),
        f"functions with more than {MOST_PARAMETERS} parameters": len(many),
        "– of these in the default method": len(many_of_default),
    }


def name_commit(tree: Path) -> str:
    """The short commit of a tree, or its folder name if it is no git checkout."""
    command = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stdout.strip() or tree.name


def format_table(columns: dict[str, dict[str, Any]]) -> str:
    """A Markdown table with a column for each tree."""
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for title in next(iter(columns.values())):
        cells = [column[title] for column in columns.values()]
        texts = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells]
        lines.append(f"| {title} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE", default=[ROOT])
    args = parser.parse_args(arguments)
    trees = [tree.resolve() for tree in args.trees]
    print(format_table({name_commit(tree): measure(tree) for tree in trees}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
