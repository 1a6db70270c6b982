"""Worker processes that read pictures, a few files at a time, in the order of the files."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from pathlib import Path

from hilander.embedders.protocol import Preparation
from hilander.embedders.reading import PictureReader, ReadPicture

# Files of one task, and tasks that wait for each worker: what is held does not grow with the set.
_TASK_FILES = 8
_TASKS_PER_WORKER = 4
_CRASHED = "made the program that decodes it crash, or use up the memory"

_reader: PictureReader | None = None


class ReadingWorkers:
    """Reads pictures in other processes.

    Parameters
    ----------
    prepare : Preparation
    folder : Path
        Of the cache.
    embedder : str
        As `cache_key` gives it.
    n_workers : int
        0 reads in this process.
    """

    def __init__(self, prepare: Preparation, folder: Path, embedder: str, n_workers: int) -> None:
        self._given = (prepare, folder, embedder)
        self.n_workers = n_workers

    def read(self, paths: Iterable[str]) -> Iterator[ReadPicture]:
        """Read files, in their order. A file that kills its worker has that as its reason.

        Parameters
        ----------
        paths : iterable of str

        Yields
        ------
        picture : ReadPicture
        """
        waiting = iter(paths)
        tasks = iter(lambda: list(islice(waiting, _TASK_FILES)), [])
        if self.n_workers == 0:
            reader = PictureReader(*self._given)
            for task in tasks:
                yield from reader.read(task)
            return
        remaining: Iterable[list[str]] = tasks
        while True:
            left: list[list[str]] = []
            yield from self._read_tasks(remaining, left)
            if not left:
                return
            # A worker died. Its files are read again one by one, to find the one that killed it.
            for path in [path for task in left for path in task]:
                yield from self._read_alone(path)
            remaining = tasks

    def _read_tasks(
        self, tasks: Iterable[list[str]], left: list[list[str]]
    ) -> Iterator[ReadPicture]:
        """Read tasks until they end or a worker dies; then `left` has the unfinished ones."""
        tasks = iter(tasks)
        under_way: deque[tuple[list[str], Future[list[ReadPicture]]]] = deque()
        pool = self._open_pool(self.n_workers)
        try:
            while True:
                for task in islice(tasks, self.n_workers * _TASKS_PER_WORKER - len(under_way)):
                    under_way.append((task, pool.submit(_read, task)))
                if not under_way:
                    return
                yield from under_way[0][1].result()
                under_way.popleft()
        except BrokenProcessPool:
            left.extend(task for task, _ in under_way)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read_alone(self, path: str) -> list[ReadPicture]:
        """Read one file in a process of its own."""
        with self._open_pool(1) as pool:
            try:
                return pool.submit(_read, [path]).result()
            except BrokenProcessPool:
                return [ReadPicture(path, reason=_CRASHED)]

    def _open_pool(self, n_workers: int) -> ProcessPoolExecutor:
        # Not forked: threads of this process may hold locks.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(n_workers, context, _start, self._given)


def _start(prepare: Preparation, folder: Path, embedder: str) -> None:
    """Begin a worker: Ctrl-C is for the parent, and a worker ends with its parent."""
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    _reader = PictureReader(prepare, folder, embedder)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def _read(paths: list[str]) -> list[ReadPicture]:
    if _reader is None:
        raise RuntimeError("the worker has not begun")
    return _reader.read(paths)
