"""Rules of the code that import-linter cannot check: lengths, asserts, torch, public names."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import hilander

PACKAGE = Path(hilander.__file__).parent
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
# Packages of networks; the command line records the version of torch.
TORCH_PACKAGES = {"linkage", "learning", "training", "comparison", "embedders", "cli"}
TESTS = Path(__file__).parent
# Test file of each module that has no mirrored one.
COVERED_BY = json.loads((TESTS / "covered_by.json").read_text("utf-8"))
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


def body_length(function):
    """Lines of a function's body, its docstring not counted."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_torch_is_imported_only_where_networks_are():
    elsewhere = [path for path in TREES if path.relative_to(PACKAGE).parts[0] not in TORCH_PACKAGES]
    assert not [
        name_of(path)
        for path in elsewhere
        if any(name.split(".")[0] == "torch" for name in imports_of(TREES[path]))
    ]


def test_no_file_is_too_long():
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in TREES}
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def test_no_function_is_too_long():
    lengths = {
        f"{name_of(path)}: {node.name}": body_length(node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {name: length for name, length in lengths.items() if length > LONGEST_BODY}


def test_no_module_has_an_assert():
    assert not [
        f"{name_of(path)}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]


def test_there_is_no_utils():
    assert not [path for path in TREES if path.stem in ("utils", "util", "helpers", "common")]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    ).stdout.split()


def test_import_hilander_imports_no_large_library():
    heavy = {"torch", "sklearn", "matplotlib", "faiss", "pyarrow", "pandas", "scipy", "numpy"}
    assert not heavy & set(run("import sys, hilander; print(*sys.modules)"))


def test_a_hierarchy_is_read_without_torch():
    loaded = set(run("import sys; from hilander import Hierarchy; print(*sys.modules)"))
    assert not {"torch", "sklearn", "matplotlib"} & loaded


@pytest.mark.parametrize("name", ["HiLander", "Collection"])
def test_the_public_classes_are_imported_without_torch(name):
    loaded = set(run(f"import sys; from hilander import {name}; print(*sys.modules)"))
    assert "hilander.estimator" in loaded
    assert not {"torch", "faiss", "matplotlib", "networkit"} & loaded


def test_the_explorer_opens_without_large_libraries():
    code = "import sys; import {}; print(*sys.modules)"
    modules = ("hilander.explorer.api.app", "hilander.explorer.session.opening")
    loaded = set(run(code.format(", ".join(modules))))
    assert set(modules) <= loaded
    assert not {"torch", "sklearn", "pandas", "matplotlib", "faiss", "numba"} & loaded


def test_public_names_are_those_promised():
    assert hilander.HiLander.__name__ == "HiLander"
    assert hilander.Hierarchy.__name__ == "Hierarchy"
    assert set(hilander.__all__) == {"Collection", "HiLander", "Hierarchy", "__version__"}
    with pytest.raises(AttributeError, match="has no attribute 'Highlander'"):
        hilander.Highlander  # noqa: B018
    from hilander.metrics.scores import bcubed_f, nmi, pairwise_f

    for metric in (pairwise_f, bcubed_f, nmi):
        assert metric([0, 0, 1], ["a", "a", "b"]) == 1.0


def test_every_module_has_a_mirrored_test_file_or_a_named_one():
    modules = {name_of(path) for path in TREES if path.name != "__init__.py"}
    mirrored = {
        name
        for name in modules
        if (TESTS / Path(name).with_name(f"test_{Path(name).name}")).is_file()
    }
    assert sorted(modules - mirrored) == sorted(COVERED_BY)
    root = TESTS.parent
    assert not [test for test in COVERED_BY.values() if not (root / test).is_file()]
