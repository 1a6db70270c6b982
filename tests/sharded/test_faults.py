"""Faults of a Ray cluster: the result stays the same to the last label."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from hilander.engines.ray_engine import RayEngine
from hilander.sharded import cells
from hilander.synthetic import make_identities
from tests.sharded.sharded_runs import assert_same, run, write_shards

pytest.importorskip("ray", reason="Ray is not installed: pip install 'hilander[ray]'")
LEAST_KILLS = int(os.environ.get("HILANDER_KILLS", "3"))  # workers that are killed


def find_workers():
    """Processes that run a task for this test."""
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as stream:
                title = stream.read()
            if title.startswith(b"ray::_run") and _descends(int(name), own):
                found.append(int(name))
        except OSError:
            pass  # it ended meanwhile
    return found


def _descends(process, ancestor):
    """Whether a process was started by another one, or by one that it started."""
    while process > 1:
        if process == ancestor:
            return True
        with open(f"/proc/{process}/stat") as stream:
            process = int(stream.read().rsplit(")", 1)[1].split()[1])
    return False


class Killer(threading.Thread):
    """Kills a worker that runs a task, again and again, at random moments."""

    def __init__(self, seed):
        super().__init__(daemon=True)
        self.rng, self.killed, self.over = np.random.default_rng(seed), 0, threading.Event()

    def run(self):
        # Not for ever: a worker that has just started would be killed before it has done anything.
        while self.killed < LEAST_KILLS and not self.over.wait(float(self.rng.uniform(0.02, 0.5))):
            busy = find_workers()
            if busy:
                os.kill(int(self.rng.choice(busy)), signal.SIGKILL)
                self.killed += 1


@pytest.fixture
def shards(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "EXACT_UP_TO", 100)
    rows, _ = make_identities(n_identities=60, seed=8)
    return write_shards(tmp_path / "shards", rows, 4)


@pytest.mark.slow
def test_workers_that_are_killed_do_not_change_the_result(model, threads, ray_engine, shards):
    expected, _, _ = run(model, shards, threads, n_parts=4)
    killer, end = Killer(0), time.monotonic() + 60 * LEAST_KILLS
    killer.start()
    try:
        while killer.is_alive() and time.monotonic() < end:
            found, _, _ = run(model, shards, ray_engine, n_parts=6)
            assert_same(found, expected)
    finally:
        killer.over.set()
        killer.join()
    assert killer.killed == LEAST_KILLS


@pytest.mark.slow
def test_a_full_object_store_is_spilled_to_disk(model, threads, tmp_path):
    import ray

    ray.shutdown()
    rows, _ = make_identities(n_identities=2_000, dim=256, seed=9)
    folder = write_shards(tmp_path / "shards", rows, 4)
    expected, _, _ = run(model, folder, threads, n_parts=1)
    engine = RayEngine(n_workers=2, object_store="80MB")
    try:
        found, _, log = run(model, folder, engine, n_parts=8)
        assert log.costs["prepare"].bytes_moved > 80e6  # more than the store holds
        assert_same(found, expected)
    finally:
        engine.close()


@pytest.mark.slow
def test_a_node_that_is_removed_does_not_change_the_result(model, threads, shards):
    import ray
    from ray.cluster_utils import Cluster

    ray.shutdown()
    expected, _, _ = run(model, shards, threads, n_parts=4)
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": 100_000_000},
    )
    lost = cluster.add_node(num_cpus=1, object_store_memory=100_000_000)
    engine = RayEngine(address=cluster.address)
    remover = threading.Timer(3.0, cluster.remove_node, (lost,), {"allow_graceful": False})
    try:
        assert engine.n_workers == 2
        remover.start()
        for _ in range(20):
            found, _, _ = run(model, shards, engine, n_parts=6)
            assert_same(found, expected)
            if not remover.is_alive():
                break
        remover.join()
        assert_same(run(model, shards, engine, n_parts=6)[0], expected)
    finally:
        remover.cancel()
        engine.close()
        cluster.shutdown()
