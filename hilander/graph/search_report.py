"""How the neighbours of a graph were found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from hilander.errors import GraphError

Method = Literal["exact", "cells", "gpu"]


@dataclass(frozen=True)
class SearchReport:
    """How the neighbours of a graph were found, and with which recall.

    Parameters
    ----------
    method : {"exact", "cells", "gpu"}
        All pairs of rows; cells (inverted lists); all pairs on a GPU.
    recall : float
        Share of the true neighbours that were found, measured on a sample of rows; 1 for an exact
        search.
    n_lists : int
        Number of cells; 0 for other methods.
    n_probes : float
        Mean number of cells that a row was compared with; 0 for other methods.
    seconds : float
        Wall-clock time.
    """

    method: Method
    recall: float = 1.0
    n_lists: int = 0
    n_probes: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            known = ", ".join(get_args(Method))
            raise GraphError(f"search method {self.method!r} is not known; use one of {known}")
        if not 0 <= self.recall <= 1:
            raise GraphError(f"recall={self.recall!r} is not a share; give a number in [0, 1]")

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SearchReport:
        """Read a report that `to_json` wrote."""
        return cls(**json.loads(text))
