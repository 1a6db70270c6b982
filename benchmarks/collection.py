"""Collections: ten drops against one run, ids that stay, and what an update costs.

``python -m benchmarks.collection run [--sets a,b] [--points n]`` appends rows, ``render`` draws the
page ``docs/results/collection.md`` from them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks import survival
from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    describe_circumstances,
    find_data,
    hash_file,
    put_block,
    read_rows,
)

ROWS = RESULTS / "collection.jsonl"
PAGE = ROOT / "docs" / "results" / "collection.md"
MARKS = ("<!-- collection: begin -->", "<!-- collection: end -->")
SETS = {
    "omniglot": "omniglot-test",
    "faces": "faces-lfw-test",
    "flowers": "flowers-test",
    "clinc150": "clinc150-use-test",
    "fruits360": "fruits360-efl0-test",
}
N_DROPS = 10
POINTS, INSERTED = 200_000, 1_000
# Ways to add the drops: whether the whole set is clustered again as it grows.
WAYS: dict[str, Any] = {"auto": "auto", "never": False}


def run(names: list[str], points: int) -> None:
    """Measure, and append rows."""
    for name in names:
        path = find_data() / f"{SETS[name]}.npz"
        facts = {"dataset": name, "dataset_hash": hash_file(path), "seed": 0}
        with np.load(path) as arrays:
            X, y = arrays["features"].astype(np.float32), arrays["labels"]
        for row in measure_drops(X, y):
            append_row(ROWS, {"kind": "drops", **facts, **describe_circumstances(), **row})
    if points:
        facts = {"dataset": "face-like", "n_points": points, "seed": 0}
        row = measure_insertion(points)
        append_row(ROWS, {"kind": "insertion", **facts, **describe_circumstances(), **row})


def measure_drops(X: Any, y: Any) -> list[dict[str, Any]]:
    """Ten drops of a tenth each, in random order, against one run on all points."""
    from hilander import Collection, HiLander
    from hilander.metrics.scores import bcubed_f, pairwise_f

    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    one = HiLander.pretrained().predict(X)
    rows = []
    for way, rerun in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            collection, stable = Collection.create(folder), Stability()
            n_whole, seconds = 0, 0.0
            for drop in np.array_split(np.arange(len(X)), N_DROPS):
                before = collection.labels()
                start = time.process_time()
                done = collection.add(X[drop], rerun=rerun)
                seconds += time.process_time() - start
                n_whole += done.whole
                if not done.whole:
                    stable.note(before, collection)
            labels = collection.labels()
        rows.append(
            {
                "way": way,
                "bcubed_f": bcubed_f(y, labels),
                "bcubed_f_of_one_run": bcubed_f(y, one),
                "pairwise_f": pairwise_f(y, labels),
                "pairwise_f_of_one_run": pairwise_f(y, one),
                "n_points": len(X),
                "n_whole": n_whole,
                "cpu_seconds": round(seconds, 2),
                **stable.facts(),
            }
        )
    return rows


class Stability:
    """Counts over updates: clusters that no new point is near, and what happened to them.

    A new point is near a cluster if it lists a member, or a member lists it.
    """

    def __init__(self) -> None:
        self.n_updates = self.n_untouched = self.n_kept = self.n_moved = self.n_points = 0

    def note(self, before: Any, collection: Any) -> None:
        """Compare the ids of clusters before an update with those after it."""
        after, n_before = collection.labels(), len(before)
        neighbours = collection.hierarchy().basis.neighbours
        listed = neighbours[n_before:].ravel()
        listing = np.flatnonzero((neighbours[:n_before] >= n_before).any(axis=1))
        near = np.unique(before[np.union1d(listed[listed < n_before], listing)])
        untouched = np.setdiff1d(before, near)
        rows = np.flatnonzero(np.isin(before, untouched))
        same_size = np.array([(after == one).sum() == (before == one).sum() for one in untouched])
        self.n_updates += 1
        self.n_untouched += len(untouched)
        moved = np.unique(before[rows][after[rows] != before[rows]])
        self.n_kept += int((same_size & ~np.isin(untouched, moved)).sum()) if len(untouched) else 0
        self.n_points += len(rows)
        self.n_moved += int((after[rows] != before[rows]).sum())

    def facts(self) -> dict[str, int]:
        """The counts."""
        return {
            "n_updates": self.n_updates,
            "n_untouched": self.n_untouched,
            "n_untouched_kept": self.n_kept,
            "n_untouched_points": self.n_points,
            "n_untouched_moved": self.n_moved,
        }


def measure_insertion(n_points: int) -> dict[str, Any]:
    """Seconds of a whole run, of 1,000 points inserted into it, and of looking up one row."""
    from benchmarks.scale_data import make_points
    from hilander import Collection
    from hilander.hierarchy.nearest import SetSearch
    from hilander.metrics.scores import bcubed_f

    points = make_points(n_points + INSERTED)
    X, y = np.load(points.features), np.load(points.labels)
    with tempfile.TemporaryDirectory() as folder:
        collection = Collection.create(folder)
        whole = _time(lambda: collection.add(X[:n_points]))
        before, stable = collection.labels(), Stability()
        row = X[n_points : n_points + 1]
        collection.assign(row)  # the first call builds the search and loads the model
        times = [_time(lambda: collection.assign(row + 0))[0] for _ in range(30)]
        recall = _recall_of(SetSearch(collection.hierarchy()), X[n_points : n_points + 100])
        start = time.perf_counter()
        collection = Collection.open(folder)
        opened = time.perf_counter() - start
        update = _time(lambda: collection.add(X[n_points:]))
        stable.note(before, collection)
        done, labels = update[2], collection.labels()
        return {
            "seconds_whole": whole[0],
            "cpu_seconds_whole": whole[1],
            "seconds_update": update[0],
            "cpu_seconds_update": update[1],
            "seconds_open": round(opened, 4),
            "stages": done.seconds,
            "n_inserted": INSERTED,
            "n_rescored": done.n_rescored,
            "n_decoded": done.n_decoded,
            "milliseconds_assign": round(float(np.median(times)) * 1e3, 2),
            "recall_assign": recall,
            "bcubed_f": bcubed_f(y, labels),
            "bcubed_f_before": bcubed_f(y[:n_points], before),
            **stable.facts(),
        }


def _time(work: Any) -> tuple[float, float, Any]:
    """Seconds, CPU-seconds, and the result of a function."""
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    return (
        round(time.perf_counter() - start, 4),
        round(time.process_time() - cpu, 4),
        result,
    )


def _recall_of(search: Any, rows: Any) -> float:
    """Share of the exact neighbours that the search of single rows finds."""
    found = []
    features = np.asarray(search.source.features, dtype=np.float32)
    for row in rows / np.linalg.norm(rows, axis=1, keepdims=True):
        exact = np.argpartition(-(features @ row), search.k)[: search.k]
        found.append(np.isin(exact, search.find(row).neighbours).mean())
    return float(np.mean(found))


def render() -> None:
    """Draw the page."""
    PAGE.write_text(put_block(PAGE.read_text("utf-8"), MARKS, describe(read_rows(ROWS))), "utf-8")


def describe(rows: list[dict[str, Any]]) -> str:
    """Tables of the last row of each measurement."""
    drops = {(row["dataset"], row["way"]): row for row in rows if row["kind"] == "drops"}
    text = [
        "| set | one run: Fb / Fp | ten drops: Fb / Fp | difference of Fb | ten drops without runs "
        "of the whole: Fb / Fp | difference of Fb |",
        "|---|---|---|---|---|---|",
    ]
    for name in SETS:
        if (name, "auto") not in drops:
            continue
        auto, never = drops[name, "auto"], drops[name, "never"]
        one = f"{auto['bcubed_f_of_one_run']:.3f} / {auto['pairwise_f_of_one_run']:.3f}"
        cells = [one]
        for row in (auto, never):
            change = row["bcubed_f"] - row["bcubed_f_of_one_run"]
            cells += [f"{row['bcubed_f']:.3f} / {row['pairwise_f']:.3f}", f"{change:+.4f}"]
        text.append(f"| {name} | {' | '.join(cells)} |")
    text += [
        "",
        "| set | way | updates | clusters that no new point was near | of these, unchanged | "
        "points in them that changed cluster |",
        "|---|---|---|---|---|---|",
    ]
    large = [row for row in rows if row["kind"] == "insertion"]
    named = [(f"{key[0]}", key[1], row) for key, row in drops.items()]
    named += [(f"{row['n_points']:,} face-like", "one update", row) for row in large]
    for name, way, row in named:
        share = f"{row['n_untouched_kept']:,}"
        text.append(
            f"| {name} | {way} | {row['n_updates']} | {row['n_untouched']:,} | {share} | "
            f"{row['n_untouched_moved']} |"
        )
    after = survival.describe(rows)
    if not large:
        return "\n".join(text + after)
    text += [
        "",
        "| points | whole run | 1,000 points inserted | share | clustering / writing | scored "
        "again / decoded again | open | assign one row | its recall |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in large:
        share = row["cpu_seconds_update"] / row["cpu_seconds_whole"]
        stages = row["stages"]
        text.append(
            f"| {row['n_points']:,} | {row['cpu_seconds_whole']:.0f} CPU-s "
            f"({row['seconds_whole']:.0f} s) | {row['cpu_seconds_update']:.1f} CPU-s "
            f"({row['seconds_update']:.1f} s) | {share:.1%} | {stages['cluster']:.1f} s / "
            f"{stages.get('write', 0):.1f} s | {row['n_rescored']:,} / {row['n_decoded']:,} | "
            f"{row['seconds_open'] * 1e3:.0f} ms | {row['milliseconds_assign']:.0f} ms | "
            f"{row['recall_assign']:.3f} |"
        )
    return "\n".join(text + after)


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "render"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--points", type=int, default=POINTS, help="0: no insertion")
    args = parser.parse_args()
    if args.command == "run":
        run([name for name in args.sets.split(",") if name], args.points)
    else:
        render()


if __name__ == "__main__":
    main()
