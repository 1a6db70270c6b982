"""A run over a sharded set: prepare, search, score, decode and pool, on an engine.

The order of the numbers, the cells, the pairs that are compared and every sum depend on the set
alone. So threads and Ray, any number of workers and any number of partitions give the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.canonical_order import find_canonical_order, invert_order
from hilander.embeddings.equal_rows import merge_equal_rows
from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.equal_points import restore_equal_points
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.original_order import restore_original_order
from hilander.hierarchy.rules import Rules, resolve_rules
from hilander.hierarchy.work import Work
from hilander.knn.search import build_knn_graph, check_k
from hilander.sharded.cells import Cells, plan_run_cells
from hilander.sharded.dealing import Dealer, assign_cells, count_parts, lay_out
from hilander.sharded.parted import PartedRows
from hilander.sharded.points import ShardedPoints, SortedPoints
from hilander.sharded.pooling import pool_sharded
from hilander.sharded.prepare import prepare_points
from hilander.sharded.scorer import ShardedScorer
from hilander.sharded.search import search_parts
from hilander.training.inference import RunSettings
from hilander.training.methods import find_method
from hilander.training.model import Model
from hilander.training.set_preparation import resolve_preparation

RECALL = 0.95  # share of the neighbours that the search of a large set has to find


@dataclass(frozen=True)
class ShardedSettings:
    """How the points are cut up; none of it changes the result.

    Parameters
    ----------
    worker_memory : int
        Memory of a worker, in bytes.
    n_parts : int, optional
        Partitions; by default as many as the memory of a worker asks for.
    """

    worker_memory: int = 4_000_000_000
    n_parts: int | None = None


class DealtSet:
    """The points of a run in partitions.

    Parameters
    ----------
    dealer : Dealer
    cells : Cells
    """

    def __init__(self, dealer: Dealer, cells: Cells) -> None:
        self.dealer: Dealer | None = dealer
        self.cells, self.layout = cells, dealer.layout
        self.rows = dealer.deal()

    def search(self, features: FloatArray, k: int, **how: Any) -> KnnGraph:
        """The graph of the points; that of clusters is searched in this process."""
        if not isinstance(features, PartedRows) or self.dealer is None:
            return build_knn_graph(features, k, **how)
        visits = self.dealer.visit()
        self.dealer = None  # the pieces are not needed any more
        return search_parts(self.rows, visits, self.layout, self.cells, k)


def walk_sharded(
    model: Model,
    points: ShardedPoints,
    settings: RunSettings,
    how: ShardedSettings,
    work: Work,
) -> Iterator[LevelStep]:
    """Cluster a sharded set level by level; the levels of clusters run in this process.

    Parameters
    ----------
    model : Model
        Of the default method.
    points : ShardedPoints
    settings : RunSettings
    how : ShardedSettings
    work : Work
        Records the stages, and may store their results.
    """
    method = find_method(settings.method)
    if not method.merges_equal_rows:
        raise SettingError(
            f"a model of the method {settings.method!r} cannot cluster shards, which needs one of "
            "the default method; give the embeddings as one array"
        )
    points.check()
    rows: Any = points  # read like an array by the code that prepares a set
    rows, equal = merge_equal_rows(rows)
    rules = resolve_rules(model.rules, len(rows), adapt_k=settings.adapt_k, **settings.asked)
    inner: Any = method.make_scorer(model.network, rules, "cpu")
    order = find_canonical_order(rows)
    ordered: Any = SortedPoints(rows, order)
    preparation = resolve_preparation(model, ordered, rules, inner, whiten=settings.whiten)
    work.preparation = preparation.describe()
    dealt = deal_points(prepare_points(rows, preparation), order, rules, how)
    features: Any = dealt.rows
    steps = walk_levels(
        features,
        ShardedScorer(inner, how.worker_memory),
        rules,
        search=dealt.search,
        pool=pool_sharded,
        work=work,
    )
    steps = restore_original_order(steps, dealt.layout.order)
    return restore_equal_points(steps, equal)


def deal_points(
    pieces: PartedRows, order: IntArray, rules: Rules, how: ShardedSettings
) -> DealtSet:
    """Choose the cells of prepared points and the partitions that they go to."""
    check_k(rules.k, len(pieces))
    cells = plan_run_cells(pieces, order, rules.k, RECALL)
    held, home = assign_cells(pieces, cells, invert_order(order))
    n_parts = how.n_parts or count_parts(*pieces.shape, how.worker_memory)
    layout = lay_out(home, order, cells.n_cells, n_parts)
    return DealtSet(Dealer(pieces, held, layout, how.worker_memory), cells)
