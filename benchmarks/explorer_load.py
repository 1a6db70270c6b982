"""Load test of the explorer: a generated run of a million points, many readers.

    python -m benchmarks.explorer_load --points 1000000 --clusters 50000 --readers 20

It prints the seconds until the first response, the 50th, 95th and 99th percentile of the response
time of every view under concurrent readers, and the peak memory of the server. It exits with code 1
if a limit is exceeded: 5 s, 300 ms, 2 GB.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.hierarchy.run_extras import RunExtras, write_extras
from hilander.hierarchy.storage import write_hierarchy
from hilander.io.writing import folder_writer

LIMIT_READY, LIMIT_P95, LIMIT_BYTES = 5.0, 0.300, 2 << 30
SHRINK = (5, 2.5, 1.6)  # nodes of a level for each cluster of it


def make_level(n_nodes: int, n_clusters: int, rng: np.random.Generator) -> Level:
    """A level of random trees of depth two."""
    labels = np.concatenate(
        (np.arange(n_clusters), rng.integers(0, n_clusters, n_nodes - n_clusters))
    )
    rng.shuffle(labels)
    density = rng.random(n_nodes).astype(np.float32)
    order = np.lexsort((-density, labels))
    peaks = order[np.searchsorted(labels[order], np.arange(n_clusters))]
    parent = peaks[labels]
    linkage = rng.uniform(0.6, 1.0, n_nodes).astype(np.float32)
    linkage[peaks] = np.nan
    return Level(parent, linkage, density, labels, peaks)


def write_generated_run(folder: Path, n_points: int, n_clusters: int, k: int = 10) -> None:
    """Write a run folder of random clusters, with a graph, labels and features."""
    rng = np.random.default_rng(0)
    counts = [n_points]
    for factor in SHRINK[:-1]:
        counts.append(int(counts[-1] / factor))
    counts = [*(count for count in counts if count > n_clusters), n_clusters]
    levels = [make_level(a, b, rng) for a, b in pairwise(counts)]
    hierarchy = Hierarchy(levels)
    final = hierarchy.labels(-1)
    neighbours = make_neighbours(final, k, rng)
    affinity = -np.sort(-rng.uniform(0.3, 1.0, (n_points, k)).astype(np.float32), axis=1)
    same = final[neighbours] == final[:, None]
    linkage = np.where(same, rng.uniform(0.6, 1, same.shape), rng.uniform(0, 0.5, same.shape))
    features = rng.normal(size=(n_points, 16)).astype(np.float32)
    ids = np.array([f"item-{row:07d}" for row in range(n_points)])
    with folder_writer(folder, "run") as inside:
        write_hierarchy(hierarchy, inside, ids)
        np.savez(
            inside / "graph.npz",
            neighbours=neighbours,
            affinity=affinity,
            linkage=linkage.astype(np.float32),
        )
        write_extras(inside, hierarchy, RunExtras(features, None, {"label": final // 2}))


def make_neighbours(final: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Random neighbours: 85 % from nearby clusters, the others from anywhere."""
    n_points = len(final)
    order = np.argsort(final, kind="stable")
    place = np.empty(n_points, dtype=np.int64)
    place[order] = np.arange(n_points)
    steps = rng.integers(1, 12, (n_points, k))
    near = order[(place[:, None] + steps) % n_points]
    anywhere = rng.integers(0, n_points, (n_points, k))
    return np.where(rng.random((n_points, k)) < 0.85, near, anywhere)


def addresses(rng: np.random.Generator, n_points: int, n_clusters: int) -> list[tuple[str, str]]:
    """One random address of every view."""
    cluster, row = int(rng.integers(n_clusters)), int(rng.integers(n_points))
    start = int(rng.integers(n_points // 2))
    page = 24 * int(rng.integers(n_clusters // 24))
    sort = str(rng.choice(["size", "doubt", "quality", "purity"]))
    level = str(rng.choice(["reviewed", "0", "1"]))
    one = f"/api/clusters/reviewed/{cluster}"
    return [
        ("overview", "/api/overview"),
        ("clusters", f"/api/clusters?sort={sort}&offset={page}&level={level}"),
        ("filtered", f"/api/clusters?min_size=10&max_size=40&offset={page // 4}"),
        ("found", f"/api/clusters?search=item-{row:07d}"),
        ("cluster", one),
        ("members", f"{one}/members"),
        ("parts", f"{one}/parts"),
        ("nearest", f"{one}/nearest"),
        ("tree", "/api/tree?min_size=4000"),
        ("tree zoomed", f"/api/tree?start={start}&end={start + 2000}&min_size=8"),
        ("map", f"/api/map?offset={page}"),
        ("point", f"/api/points/{row}"),
        ("search", f"/api/search?q=item-{row:07d}"),
        ("queue", "/api/review/queue"),
        ("pairs", "/api/review/queue?kind=pair"),
        ("log", "/api/review/log"),
        ("compare", "/api/compare?key=labels"),
        ("differences", f"/api/compare/differences?key=labels&offset={page // 10}"),
    ]


def run_reader(address: str, seed: int, until: float, shape: tuple[int, int], found: dict) -> None:
    """One reader: requests random views until the time is over."""
    rng = np.random.default_rng(seed)
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        while time.monotonic() < until:
            views = addresses(rng, *shape)
            name, path = views[int(rng.integers(len(views)))]
            started = time.perf_counter()
            response = client.get(path)
            found[name].append(time.perf_counter() - started)
            if response.status_code != 200:
                found["errors"].append(0.0)
            # A person reads before the next request.
            time.sleep(float(rng.uniform(0.2, 1.0)))


def peak_memory(process_id: int) -> int:
    """Peak memory of a process, in bytes."""
    text = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", text).group(1)) * 1024


def measure(folder: Path, options: argparse.Namespace) -> dict:
    """Start the explorer, run the readers, and return what was measured."""
    command = [sys.executable, "-m", "hilander", "explore", str(folder), "--port", "0",
               "--no-browser"]  # fmt: skip
    started = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stdout.readline()).group()
        for _ in range(600):
            try:
                httpx.get(address + "api/overview", timeout=60, trust_env=False).raise_for_status()
                break
            except httpx.TransportError:
                time.sleep(0.02)
        ready = time.perf_counter() - started
        warm_up(address)
        found: dict[str, list[float]] = defaultdict(list)
        until = time.monotonic() + options.seconds
        shape = (options.points, options.clusters)
        readers = [
            threading.Thread(target=run_reader, args=(address, seed, until, shape, found))
            for seed in range(options.readers)
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        memory = peak_memory(server.pid)
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()
    return {"ready": ready, "memory": memory, "times": found}


def warm_up(address: str) -> None:
    """Wait until the background work of the server is done."""
    for _ in range(600):
        layout = httpx.get(address + "api/map?limit=1", timeout=60, trust_env=False).json()
        scored = httpx.get(address + "api/overview", timeout=60, trust_env=False).json()
        if not layout["pending"] and not scored["metrics_pending"]:
            return
        time.sleep(0.5)


def print_result(result: dict, options: argparse.Namespace) -> bool:
    """Print the table, and return whether every limit was kept."""
    errors = len(result["times"].pop("errors", ()))
    everything = np.concatenate([*result["times"].values()])
    print(f"{options.points:,} points, {options.clusters:,} clusters, {options.readers} readers")
    print(f"{'view':<14}{'requests':>9}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}")
    rows = [*sorted(result["times"].items()), ("all", everything)]
    for name, times in rows:
        p50, p95, p99 = 1000 * np.percentile(times, [50, 95, 99])
        print(f"{name:<14}{len(times):>9}{p50:>9.0f}{p95:>9.0f}{p99:>9.0f}")
    p95 = float(np.percentile(everything, 95))
    ready, memory = result["ready"], result["memory"]
    print(f"ready in {ready:.2f} s, p95 {p95 * 1000:.0f} ms, peak {memory / 1e9:.2f} GB, "
          f"{errors} errors")  # fmt: skip
    kept = ready < LIMIT_READY and p95 < LIMIT_P95 and memory < LIMIT_BYTES and not errors
    summary = {"ready_s": ready, "p95_s": p95, "peak_bytes": memory, "errors": errors, "ok": kept}
    print(json.dumps(summary))
    return kept


def main() -> int:
    """Generate the run, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=50_000)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--folder", type=Path, help="keep the generated run here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "run"
        if not folder.exists():
            write_generated_run(folder, options.points, options.clusters)
        return 0 if print_result(measure(folder, options), options) else 1


if __name__ == "__main__":
    sys.exit(main())
