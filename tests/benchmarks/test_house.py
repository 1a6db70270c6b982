import ast
from pathlib import Path

import pytest

from benchmarks import house
from benchmarks.house import Module


def parse(text, path="one.py"):
    return Module(Path(path), text.splitlines(), ast.parse(text))


def only_function(text):
    (function,) = parse(text).functions()
    return function


def test_numbers_are_named_defaults_or_unnamed():
    text = "LEAST = 3\n_RANGE = 0.1, 7\nother = 9\ndef f(x=4, *, y=0.5):\n    return 5 * x + 1\n"
    assert house.count_numbers(parse(text)) == {"named": 3, "defaults": 1, "unnamed": 2}
    field = "class A:\n    size: int = 6\n    flag: bool = True\n"
    assert house.count_numbers(parse(field)) == {"named": 0, "defaults": 1, "unnamed": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('self.method == "paper"', True),
        ('method in ("paper", "evidence")', True),
        ("isinstance(network, EvidenceNetwork)", True),
        ("isinstance(plan, (paper.TrainingPlan, int))", True),
        ("isinstance(method, str)", False),
        ('search.method == "exact"', False),
        ('name == "paper"', False),
        ("method is None", False),
    ],
)
def test_a_branch_on_the_method_is_found(text, expected):
    assert house.is_method_branch(ast.parse(text, mode="eval").body) is expected


def test_a_function_that_calls_backward_is_a_training_loop():
    assert house.trains(only_function("def f(loss):\n    loss.backward()\n"))
    assert not house.trains(only_function("def f(loss):\n    return loss\n"))
    outer, inner = parse("def f(x):\n    def g():\n        x.backward()\n    g()\n").functions()
    assert (house.trains(outer), house.trains(inner)) == (False, True)


def test_a_body_has_no_docstring_and_self_is_no_parameter():
    function = only_function('def f(self, a, *, b):\n    """What."""\n    a += 1\n    return a\n')
    assert house.body_lines(function) == 2
    assert house.count_parameters(function) == 2


def test_a_shared_run_of_lines_is_one_duplicate():
    run = "\n".join(f"x{number} = {number}" for number in range(8))
    apart = "y = 1\n" + run.replace("x3 = 3", "x3 = 4")
    assert house.count_duplicates([parse(run), parse("z = 0\n# comment\n" + run)]) == 1
    assert house.count_duplicates([parse(run), parse(apart)]) == 0
    assert house.count_duplicates([parse(run + "\n" + run)]) == 0


def test_a_table_has_a_column_for_each_tree():
    table = house.format_table({"one": {"lines": 1000, "longest": "5 (`f`)"}})
    assert table.splitlines()[2:] == ["| lines | 1,000 |", "| longest | 5 (`f`) |"]
