"""The methods by name."""

from __future__ import annotations

from hilander.errors import check_choice
from hilander.training.evidence.method import EvidenceMethod
from hilander.training.method import Method
from hilander.training.paper.method import PaperMethod

METHODS: dict[str, Method] = {one.name: one for one in (EvidenceMethod(), PaperMethod())}


def find_method(name: str) -> Method:
    """The method of this name; the error for an unknown one suggests the nearest."""
    check_choice("method", name, tuple(METHODS))
    return METHODS[name]
