"""Stages of a training run that run in parallel, and how they are halted."""

import time
from dataclasses import replace
from threading import Event

import pytest
import torch
from threadpoolctl import threadpool_limits

from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.network_training import (
    init_network,
    train_evidence,
    train_on_episodes,
)
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.recipe import learn_by_evidence
from hilander.training.evidence.thresholds import ThresholdSearch
from hilander.training.stages import Stages, run_in_parallel

pytestmark = pytest.mark.usefixtures("small_steps")
PLAN = EvidencePlan(
    network=EvidenceSettings(hidden=8),
    learning=EvidenceLearning(epochs=2, batch_size=64, learning_rate=0.02, most_points=60),
    rules=Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True),
    device="cpu",
)
QUIET = Stages(None, "", verbose=False)


def equal(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_neither_threads_nor_thresholds_change_the_weights(labelled):
    learned = learn_by_evidence(*labelled, PLAN)
    with threadpool_limits(1):
        assert equal(learn_by_evidence(*labelled, PLAN).network, learned.network)
    rules = replace(PLAN.rules, p_tau=0.9, p_tau_merge=0.9)
    given = learn_by_evidence(*labelled, replace(PLAN, rules=rules, tune=()))
    assert equal(given.network, learned.network)
    found = {name: getattr(learned.rules, name) for name in ("between_cosine", "training_points")}
    assert given.rules == replace(rules, **found)


def test_if_one_task_fails_the_others_are_halted(labelled):
    stages = Stages(None, "", verbose=False)
    started = Event()

    def fail():
        started.wait(20)
        raise RuntimeError("no more")

    def go_on():
        started.set()
        endless = replace(PLAN, learning=replace(PLAN.learning, epochs=10**6))
        return train_evidence(Episode(*labelled), endless, stages, "endless")

    with threadpool_limits(2), pytest.raises(RuntimeError, match="no more"):
        run_in_parallel(fail, go_on, stages=stages, device="cpu")


def test_a_search_for_thresholds_is_halted(labelled):
    stages = Stages(None, "", verbose=False)
    unseen = Episode(*labelled)
    search = ThresholdSearch(
        init_network(PLAN), [unseen], PLAN.rules, device="cpu", most_points=60, watch=stages.watch
    )
    assert search.try_rules(PLAN.rules)["f"] > 0
    stages.halt.set()
    with pytest.raises(InterruptedError):
        search.choose()


def test_making_examples_is_halted(labelled):
    stages = Stages(None, "", verbose=False)

    stages.halt.set()
    with pytest.raises(InterruptedError):
        train_on_episodes([Episode(*labelled)], PLAN, stages, "halted")


def test_tasks_run_at_the_same_time_and_return_in_their_order():
    met = Event()

    def wait():
        assert met.wait(20)
        return "first"

    def meet():
        time.sleep(0.01)
        met.set()
        return "second"

    with threadpool_limits(2):
        found = run_in_parallel(wait, meet, stages=QUIET, device="cpu")
    assert found == ["first", "second"]
