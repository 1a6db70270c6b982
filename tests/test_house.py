"""The rules of the house, read off the code."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import hilander

PACKAGE = Path(hilander.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
STAGES = ("data", "graph", "model", "partition", "peers", "scale", "tree", "validation", "web")
# Root modules that stand beside the stages, before all of them.
COMMON = {"errors"}
MOST_LINES = 400
LONGEST_BODY = 60


def name_of(path):
    return str(path.relative_to(PACKAGE))


def imports_of(tree):
    """Dotted names a module imports, also inside functions and for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            if node.module == "hilander":
                yield from (f"hilander.{alias.name}" for alias in node.names)


def stage_files():
    return [path for path in FILES if path.relative_to(PACKAGE).parts[0] in STAGES]


def test_stage_names_in_alphabetical_order_are_the_datas_path():
    assert list(STAGES) == sorted(STAGES)
    assert {path.relative_to(PACKAGE).parts[0] for path in stage_files()} <= set(STAGES)


@pytest.mark.parametrize("path", stage_files(), ids=name_of)
def test_a_stage_imports_itself_earlier_stages_and_errors(path):
    stage = path.relative_to(PACKAGE).parts[0]
    for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
        root, _, rest = name.partition(".")
        if root != "hilander" or not rest or rest == "__version__":
            continue
        imported = rest.split(".")[0]
        allowed = imported in COMMON or (imported in STAGES and imported <= stage)
        assert allowed, f"{name_of(path)} imports {name}"


@pytest.mark.parametrize("path", stage_files(), ids=name_of)
def test_torch_is_imported_only_where_the_model_is(path):
    if path.relative_to(PACKAGE).parts[0] in ("model", "peers", "scale"):
        return
    names = imports_of(ast.parse(path.read_text(encoding="utf-8")))
    assert not any(name.split(".")[0] == "torch" for name in names)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_file_is_too_long(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= MOST_LINES, f"{name_of(path)} has {n_lines} lines; split it by step"


def body_length(function):
    """Lines of a function's body, its docstring not counted."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_function_is_too_long(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = body_length(node)
            assert length <= LONGEST_BODY, f"{name_of(path)}: {node.name} has {length} lines"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_user_input_is_never_checked_by_an_assert(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_there_is_no_utils():
    assert not [path for path in FILES if path.stem in ("utils", "util", "helpers", "common")]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    ).stdout.split()


def test_import_hilander_is_quick_for_it_imports_nothing_heavy():
    heavy = {"torch", "sklearn", "matplotlib", "faiss", "pyarrow", "pandas", "scipy", "numpy"}
    assert not heavy & set(run("import sys, hilander; print(*sys.modules)"))


def test_a_hierarchy_is_read_without_torch():
    loaded = set(run("import sys; from hilander import Hierarchy; print(*sys.modules)"))
    assert not {"torch", "sklearn", "matplotlib"} & loaded


def test_public_names_are_those_promised():
    assert hilander.HiLander.__name__ == "HiLander"
    assert hilander.Hierarchy.__name__ == "Hierarchy"
    assert set(hilander.__all__) == {"HiLander", "Hierarchy", "__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'Highlander'"):
        hilander.Highlander  # noqa: B018
    from hilander.metrics.scores import bcubed_f, nmi, pairwise_f

    for metric in (pairwise_f, bcubed_f, nmi):
        assert metric([0, 0, 1], ["a", "a", "b"]) == 1.0
