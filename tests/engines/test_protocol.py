"""Engines: the same tasks give the same results, on threads and on Ray."""

from __future__ import annotations

import time

import numpy as np
import pytest

from hilander.engines.protocol import run_tasks
from hilander.engines.thread_engine import ThreadEngine
from hilander.errors import SettingError


def test_results_of_a_task_are_inputs_of_another(engine):
    held = engine.put(np.arange(10))
    first = engine.submit(np.add, held, 1)
    second = engine.submit(np.multiply, first.results[0], held)
    assert np.array_equal(engine.fetch(second.results[0]), np.arange(10) * np.arange(1, 11))


def test_a_task_gives_as_many_results_as_it_was_asked_for(engine):
    task = engine.submit(divmod, 17, 5, n_results=2)
    assert [engine.fetch(one) for one in task.results] == [3, 2]


def test_an_error_of_a_task_is_raised_where_it_is_fetched(engine):
    task = engine.submit(np.linalg.inv, np.zeros((2, 2)))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        engine.fetch(task.results[0])


def test_an_error_reaches_the_tasks_that_need_the_result(engine):
    task = engine.submit(np.add, engine.submit(np.linalg.inv, np.zeros((2, 2))).results[0], 1)
    with pytest.raises(np.linalg.LinAlgError):
        list(run_tasks(engine, [task]))


def test_records_count_the_bytes_that_a_task_reads_and_returns(engine):
    held = engine.put(np.zeros(1_000, dtype=np.float32))
    ((task, record),) = run_tasks(engine, [engine.submit(np.add, held, np.float32(1), rows=7)])
    assert record.moved == 8_000 + 4
    assert task.rows == 7
    assert record.peak > 1e6
    assert record.worker


def test_tasks_are_submitted_while_others_run_and_never_too_many(engine):
    under_way = []

    def submit():
        for number in range(20):
            under_way.append(number)
            yield engine.submit(time.sleep, 0.001)

    for done, _ in enumerate(run_tasks(engine, submit(), ahead=3)):
        assert len(under_way) <= done + 3
    assert len(under_way) == 20


def test_threads_are_counted_and_a_wrong_number_is_refused():
    assert ThreadEngine(3).n_workers == 3
    with pytest.raises(SettingError, match="n_workers=0"):
        ThreadEngine(0)
