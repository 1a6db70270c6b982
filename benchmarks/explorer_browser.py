"""The explorer in a browser at a million points: first content of the views, frames of the map.

    python -m benchmarks.explorer_browser run       measure (some minutes; needs a Chromium)
    python -m benchmarks.explorer_browser render    draw docs/results/explorer.md from the rows

The browser has no graphics card: Chromium draws in software, on the cores of the server.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.explorer_load import warm_up, write_generated_run
from benchmarks.rows import RESULTS, ROOT, append_row, describe_circumstances, put_block, read_rows

ROWS = RESULTS / "explorer.jsonl"
PAGE = ROOT / "docs" / "results" / "explorer.md"
MARKS = ("<!-- explorer: begin -->", "<!-- explorer: end -->")
N_POINTS, N_CLUSTERS = 1_000_000, 50_000
VIEWS = {
    "overview": "",
    "clusters": "clusters",
    "cluster": "cluster/reviewed/7",
    "point": "point/7",
    "hierarchy": "tree",
    "map": "map",
    "review": "review",
}
SECONDS = 4.0
PATIENCE = 120.0
# When the first view is in the document, in milliseconds since the navigation began.
WATCH = """
new MutationObserver((_, observer) => {
    if (!document.querySelector('#main .view')) return;
    window.firstView = performance.now();
    observer.disconnect();
}).observe(document, {childList: true, subtree: true});
"""
SHOWN = "document.querySelector('#main .view') && window.firstView"
DRAWN = "document.querySelector('.map-box canvas')?.dataset.frames"
# Moves the map at every frame, and gives the intervals between frames and the times to paint one.
MOVE = """async ([seconds, step, turn]) => {
    const canvas = document.querySelector('.map-box canvas');
    const box = canvas.getBoundingClientRect();
    const middle = {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2};
    const [intervals, paints] = [[], []];
    const begun = performance.now();
    let [last, frames] = [begun, Number(canvas.dataset.frames)];
    for (let n = 0; last - begun < 1000 * seconds; n++) {
        const deltaY = n % (2 * turn) < turn ? -step : step;
        canvas.dispatchEvent(new WheelEvent('wheel', {deltaY, ...middle, cancelable: true}));
        while (Number(canvas.dataset.frames) === frames) await new Promise(requestAnimationFrame);
        frames = Number(canvas.dataset.frames);
        intervals.push(performance.now() - last);
        last = performance.now();
        paints.push(Number(canvas.dataset.milliseconds));
    }
    return {intervals, paints};
}"""
# Step of the wheel, and steps until it turns: nearly still, so that all points are in view; and
# zooming in fourfold and out again.
MOVES = {"all in view": (2, 2), "zooming in and out": (16, 54)}


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, float]]:
    """The address of an explorer of a run, and when its process was started."""
    command = [sys.executable, "-m", "hilander", "explore", str(folder), "--port", "0",
               "--no-browser"]  # fmt: skip
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            found = re.search(r"http://\S+", server.stdout.readline() if server.stdout else "")
            if found is None:
                raise RuntimeError("the explorer did not start")
            yield found.group(), started
        finally:
            server.terminate()


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless Chromium that draws in software."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


def open_view(browser: Any, address: str, path: str) -> Any:
    """A new page that shows a view."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.add_init_script(WATCH)
    page.goto(f"{address}#/{path}", wait_until="commit")
    wait(page, SHOWN)
    return page


def wait(page: Any, expression: str) -> None:
    """Wait until an expression is true. The page forbids evaluation inside of it."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(f"Boolean({expression})"):
        if time.monotonic() > end:
            raise TimeoutError(f"not after {PATIENCE:.0f} s: {expression}")
        page.wait_for_timeout(20)


def measure_views(browser: Any, address: str, started: float) -> Iterator[dict[str, Any]]:
    """Seconds until each view is in the document."""
    page = open_view(browser, address, "")
    since_start = time.perf_counter() - started
    seconds = page.evaluate("window.firstView") / 1000
    page.close()
    yield {"kind": "view", "view": "overview, first", "seconds": seconds, "start": since_start}
    warm_up(address)
    for view, path in VIEWS.items():
        page = open_view(browser, address, path)
        yield {"kind": "view", "view": view, "seconds": page.evaluate("window.firstView") / 1000}
        page.close()


def measure_frames(browser: Any, address: str, n_places: int | None) -> Iterator[dict[str, Any]]:
    """Frames a second of the map: of the run, or of so many random points in its place."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    if n_places is not None:
        body = make_map(n_places)
        page.route("**/api/map.bin*", lambda route: route.fulfill(body=body))
    begun = time.perf_counter()
    page.goto(f"{address}#/map", wait_until="commit")
    wait(page, DRAWN)
    drawn = time.perf_counter() - begun
    drawn_points = n_places or int(page.evaluate(
        "fetch('api/map?limit=1').then(one => one.json()).then(one => one.total)"))  # fmt: skip
    for size in ("all equal", "by cluster"):
        page.get_by_label("Size").select_option(label=size)
        for name, (step, turn) in MOVES.items():
            found = page.evaluate(MOVE, [SECONDS, step, turn])
            intervals = np.array(found["intervals"][3:])
            yield {
                "kind": "frames",
                "n_places": drawn_points,
                "made": n_places is not None,
                "dots": size,
                "move": name,
                "seconds_until_drawn": drawn,
                "frames_per_second": float(1000 * len(intervals) / intervals.sum()),
                "slow_ms": float(np.percentile(intervals, 95)),
                "paint_ms": float(np.median(found["paints"])),
                "load": os.getloadavg()[0],
            }
    page.close()


def make_map(n_places: int) -> bytes:
    """The bytes of a map of random clusters, as the explorer sends them."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, N_CLUSTERS, n_places)
    centres = rng.normal(0, 0.35, (N_CLUSTERS, 2))
    places = np.clip(centres[cluster] + rng.normal(0, 0.01, (n_places, 2)), -1, 1)
    row = np.arange(n_places)
    sizes = np.bincount(cluster, minlength=N_CLUSTERS)[cluster]
    columns = (
        (row, "<i4"), (places[:, 0], "<f4"), (places[:, 1], "<f4"), (cluster, "<i4"),
        (np.zeros(n_places), "<i4"), (rng.random(n_places), "<f4"), (sizes, "<i4"),
    )  # fmt: skip
    return b"".join(np.ascontiguousarray(one, dtype=kind).tobytes() for one, kind in columns)


def run(folder: Path) -> Iterator[dict[str, Any]]:
    """Measure everything on a generated run."""
    if not folder.exists():
        write_generated_run(folder, N_POINTS, N_CLUSTERS)
    with serve(folder) as (address, started), open_browser() as browser:
        yield from measure_views(browser, address, started)
        yield from measure_frames(browser, address, None)
        yield from measure_frames(browser, address, N_POINTS)


def render(rows: list[dict[str, Any]], page: str) -> str:
    """The page with its tables, from the last row of each kind."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        place = tuple(row.get(name) for name in ("kind", "view", "n_places", "dots", "move"))
        last.pop(place, None)
        last[place] = row
    views = [row for row in last.values() if row["kind"] == "view"]
    frames = [row for row in last.values() if row["kind"] == "frames"]
    parts = [_render_views(views), _render_frames(frames)]
    return put_block(page, MARKS, "\n\n".join(part for part in parts if part))


def _render_views(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [
        "| view | seconds until it is shown | since the command was started |",
        "|---|---|---|",
    ]
    for row in rows:
        start = f"{row['start']:.2f}" if "start" in row else ""
        lines.append(f"| {row['view']} | {row['seconds']:.2f} | {start} |")
    return "\n".join(lines)


def _render_frames(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [
        "| points drawn | dots | movement | frames a second | 95 % of frames within, ms "
        "| painting, ms | load |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        places = f"{row['n_places']:,}" + (" (made up)" if row["made"] else "")
        lines.append(
            f"| {places} | {row['dots']} | {row['move']} | {row['frames_per_second']:.0f} "
            f"| {row['slow_ms']:.0f} | {row['paint_ms']:.1f} | {row['load']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Append rows, or draw the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "render"))
    parser.add_argument("--folder", type=Path, help="keep the generated run here")
    options = parser.parse_args()
    if options.command == "render":
        PAGE.write_text(render(read_rows(ROWS), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as temporary:
        for row in run(options.folder or Path(temporary) / "run"):
            append_row(ROWS, {**row, **describe_circumstances()})
            print(row, flush=True)


if __name__ == "__main__":
    main()
