"""What a collection survives: kills at random moments of an update, and runs after a review.

``python -m benchmarks.survival run [--sets a,b] [--kills n]`` appends rows to
``benchmarks/results/collection.jsonl``; ``python -m benchmarks.collection render`` draws them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.review import Reviewer, review_by_queue
from benchmarks.rows import RESULTS, append_row, describe_circumstances, find_data, hash_file

ROWS = RESULTS / "collection.jsonl"
SETS = {
    "omniglot": "omniglot-test",
    "faces": "faces-lfw-test",
    "flowers": "flowers-test",
    "clinc150": "clinc150-use-test",
    "fruits360": "fruits360-efl0-test",
}
KILLED = "flowers"
N_KILLS = 30
FIRST = 0.9  # share of the points of the run that is reviewed
N_NAMES = 50  # largest clusters that are named
SETTINGS = ["--k", "12", "--p-tau", "0.6"]  # of the run after the review
WAYS = {"hilander cluster, other settings": "cluster", "hilander update": "update"}


def run(names: list[str], n_kills: int) -> None:
    """Measure, and append rows."""
    with tempfile.TemporaryDirectory() as folder:
        if n_kills:
            row = measure_kills(Path(folder), n_kills)
            append_row(ROWS, {"kind": "kills", "seed": 0, **describe_circumstances(), **row})
        for name in names:
            for way, command in WAYS.items():
                row = measure_rerun(name, command, Path(folder))
                path = find_data() / f"{SETS[name]}.npz"
                facts = {"dataset": name, "dataset_hash": hash_file(path), "seed": 0, "way": way}
                append_row(ROWS, {"kind": "rerun", **facts, **describe_circumstances(), **row})


def write_parts(name: str, folder: Path, share: float) -> tuple[Path, Path, dict[str, int]]:
    """Write a set in two parts, with ids, and give the identity of each id."""
    with np.load(find_data() / f"{SETS[name]}.npz") as arrays:
        X, y = arrays["features"], arrays["labels"]
    order = np.random.default_rng(0).permutation(len(X))
    ids = np.array([f"item {row}" for row in order])
    n_first = round(share * len(X))
    for part, rows in (
        ("first", slice(0, n_first)),
        ("all", slice(None)),
        ("new", slice(n_first, None)),
    ):
        np.savez(folder / f"{name}-{part}.npz", features=X[order[rows]], ids=ids[rows])
    truth = dict(zip(ids.tolist(), y[order].tolist(), strict=True))
    return folder / f"{name}-first.npz", folder / f"{name}-new.npz", truth


def call(*command: Any) -> None:
    """Run a command of hilander in this process."""
    from hilander.cli.main import main as run_command

    if run_command([*map(str, command), "--quiet"]) != 0:
        raise RuntimeError(f"{command} failed")


def measure_kills(folder: Path, n_kills: int) -> dict[str, Any]:
    """Kill an update at random moments, and look at what is on disk each time."""
    first, new, _ = write_parts(KILLED, folder, FIRST)
    kept = folder / "kept"
    call("cluster", first, "-o", kept)
    done = shutil.copytree(kept, folder / "done")
    start = time.perf_counter()
    os.waitpid(start_update(done, new), 0)
    seconds = time.perf_counter() - start
    states = {read_state(kept): "old", read_state(done): "new"}
    rng, found = np.random.default_rng(0), Counter[str]()
    for moment in np.sort(rng.uniform(0, 1.2 * seconds, n_kills)):
        target = shutil.copytree(kept, folder / "target" / "run")
        process = start_update(target, new)
        time.sleep(moment)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        state = states.get(read_state(target), "between")
        found[state] += 1
        # Whatever was left beside the run is in nobody's way.
        found["left"] += any(one.name != "run" for one in target.parent.iterdir())
        if state == "old":
            os.waitpid(start_update(target, new), 0)
        found["repeated"] += states.get(read_state(target)) == "new"
        shutil.rmtree(target.parent)
    return {
        "dataset": KILLED, "n_kills": n_kills, "seconds": round(seconds, 2),
        "n_old": found["old"], "n_new": found["new"], "n_between": found["between"],
        "n_leftovers": found["left"], "n_repeated": found["repeated"],
    }  # fmt: skip


def start_update(run: Path, new: Path) -> int:
    """Start `hilander update` in a fork of this process, and give its number."""
    process = os.fork()
    if process:
        return process
    try:
        call("update", run, new, "--rerun", "no")
    finally:
        os._exit(0)


def read_state(folder: Path) -> str:
    """A digest of what a collection says: items, clusters, points, graph and changes."""
    from hilander import Collection

    collection = Collection.open(folder)
    basis, changes = collection.hierarchy().basis, collection.changes
    digest = hashlib.sha256()
    arrays = [collection.ids, collection.labels(), basis.features, basis.neighbours, basis.linkage]
    for array in (*arrays, np.load(folder / "embeddings.npy"), *changes.values()):
        values = np.asarray(array)
        digest.update(
            "\0".join(map(str, values)).encode() if values.dtype == object else values.tobytes()
        )
    return digest.hexdigest()


def measure_rerun(name: str, command: str, folder: Path) -> dict[str, Any]:
    """Review a run, cluster again with a tenth more points, and count what still holds."""
    from hilander import Collection
    from hilander.explorer.session.opening import open_explorer

    first, new, truth = write_parts(name, folder, FIRST)
    target = folder / f"{name}-{command}"
    call("cluster", first, "-o", target)
    explorer = open_explorer(target)
    ids = [str(one) for one in explorer.run.items.ids.to_pylist()]
    identities = np.unique([truth[one] for one in ids], return_inverse=True)[1]
    n_answers = 0

    def count(number: int, _: Any) -> None:
        nonlocal n_answers
        n_answers = number

    review_by_queue(explorer, Reviewer(identities, 0.0, 0), lambda _: 0, count)
    named = {}
    for group in explorer.reviewed().order("size")[:N_NAMES].tolist():
        explorer.act("name", {"group": group, "name": f"name {group}"})
        named[f"name {group}"] = [ids[row] for row in explorer.reviewed().rows_of(group)]
    must, cannot = explorer.review.state.constraints()
    pairs = [[(ids[a], ids[b]) for a, b in one] for one in (must, cannot)]
    explorer.store.close()

    if command == "cluster":
        call("cluster", folder / f"{name}-all.npz", "-o", target, *SETTINGS)
    else:
        call("update", target, new)
    collection = Collection.open(target)
    cluster = dict(zip(collection.ids.tolist(), collection.labels().tolist(), strict=True))
    again = open_explorer(target)
    names, on_most = again.review.state.names, 0
    for text, items in named.items():
        most = Counter(cluster[one] for one in items).most_common(1)[0][0]
        on_most += names.get(most) == text
    questions, open_again = {frozenset(pair) for one in pairs for pair in one}, 0
    for question in again.questions[:N_NAMES]:
        _, pieces = again.find_question(question.key)
        rest = again.reviewed().rows_of(question.group)
        sides = [np.setdiff1d(rest, np.concatenate(pieces)), *pieces]
        heads = [{again.run.items.id_of(int(row)) for row in side} for side in sides]
        open_again += any(
            len(one & heads[0]) == 1 and len(one & side) == 1
            for one in questions
            for side in heads[1:]
        )
    row = {
        "n_points": len(ids), "n_after": len(cluster), "n_answers": n_answers,
        "n_must": len(pairs[0]), "n_cannot": len(pairs[1]),
        "broken_must": sum(cluster[a] != cluster[b] for a, b in pairs[0]),
        "broken_cannot": sum(cluster[a] == cluster[b] for a, b in pairs[1]),
        "n_names": len(named), "n_names_on_most": on_most,
        "n_conflicts": len(again.carried_conflicts()), "n_asked_again": open_again,
    }  # fmt: skip
    again.store.close()
    return row


def describe(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of the tables of the last row of each measurement."""
    text: list[str] = []
    kills = [row for row in rows if row["kind"] == "kills"][-1:]
    if kills:
        text += [
            "",
            "| set | killed | the old state | the new state | between | left something beside | "
            "then updated |",
            "|---|---|---|---|---|---|---|",
        ]
    text += [
        f"| {row['dataset']} | {row['n_kills']} | {row['n_old']} | {row['n_new']} | "
        f"{row['n_between']} | {row['n_leftovers']} | {row['n_repeated']} |"
        for row in kills
    ]
    reruns = {(row["dataset"], row["way"]): row for row in rows if row["kind"] == "rerun"}
    if reruns:
        text += [
            "",
            "| set | then | answers | pairs together / broken | pairs apart / broken | names / on "
            "most of their items | conflicts listed |",
            "|---|---|---|---|---|---|---|",
        ]
    text += [
        f"| {name} | {way} | {row['n_answers']} | {row['n_must']:,} / {row['broken_must']} | "
        f"{row['n_cannot']:,} / {row['broken_cannot']} | {row['n_names']} / "
        f"{row['n_names_on_most']} | {row['n_conflicts']} |"
        for (name, way), row in reruns.items()
    ]
    return text


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run",))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--kills", type=int, default=N_KILLS, help="0: no kills")
    args = parser.parse_args()
    run([name for name in args.sets.split(",") if name], args.kills)


if __name__ == "__main__":
    main()
