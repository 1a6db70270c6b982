from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from hilander.errors import ModelError
from hilander.learning.checkpoint import Checkpoint
from hilander.learning.loop import (
    Run,
    Schedule,
    Task,
    cosine,
    linear,
    train,
    train_epoch,
    warm_up_then_cosine,
)


class Regression(Task):
    """``y = 3 x``; every epoch draws its batches from its number."""

    def __init__(self, fail_at=None):
        super().__init__(nn.Linear(1, 1))
        nn.init.zeros_(self.network.weight)
        nn.init.zeros_(self.network.bias)
        self.fail_at, self.n_losses, self.is_open = fail_at, 0, False

    @contextmanager
    def open_epoch(self, epoch):
        rng = np.random.default_rng(epoch)
        self.is_open = True
        try:
            yield [torch.from_numpy(rng.normal(size=(n, 1)).astype(np.float32)) for n in (4, 12)]
        finally:
            self.is_open = False

    def losses(self, batch):
        assert self.is_open
        assert self.network.training
        self.n_losses += 1
        if self.n_losses == self.fail_at:
            raise KeyboardInterrupt
        wrong = self.network(batch) - 3 * batch
        return {
            "squared": wrong.square().mean(),
            "penalty": 0.01 * self.network.weight.square().sum(),
        }

    def weight(self, batch):
        return len(batch)

    def validate(self, epoch):
        self.network.eval()
        return {"score": float(epoch)} if epoch % 2 else {}


def run_task(task, epochs=4, rate=0.1, run=None, **schedule):
    optimizer = torch.optim.SGD(task.network.parameters(), rate, momentum=0.9)
    return train(task, optimizer, Schedule(epochs, rate, cosine, **schedule), run)


def weights(task):
    return {name: value.clone() for name, value in task.network.state_dict().items()}


def test_training_reduces_the_loss_and_ends_in_inference_mode():
    task = Regression()
    history = run_task(task, epochs=10)
    assert history[-1]["loss"] < 0.2 * history[0]["loss"]
    assert not task.network.training


def test_a_record_has_the_mean_losses_by_weight_the_last_rate_and_the_validation():
    task = Regression()
    optimizer = torch.optim.SGD(task.network.parameters(), 0.0)
    schedule = Schedule(2, 1e-30, linear)  # a rate that changes nothing
    record = train_epoch(task, optimizer, schedule, 1)
    with task.open_epoch(1) as batches:
        task.network.train()
        squared = [task.losses(batch)["squared"].item() for batch in batches]
    assert record["squared"] == pytest.approx((4 * squared[0] + 12 * squared[1]) / 16)
    assert record["loss"] == record["squared"] + record["penalty"]
    assert record["learning_rate"] == pytest.approx(1e-30 * 0.25)  # second step of the second epoch
    history = run_task(Regression())
    assert [record["epoch"] for record in history] == [0, 1, 2, 3]
    assert [record.get("score") for record in history] == [None, 1.0, None, 3.0]


def test_a_single_loss_is_recorded_once():
    class Single(Regression):
        def losses(self, batch):
            return {"only": super().losses(batch)["squared"]}

    assert set(run_task(Single(), epochs=1)[0]) == {"epoch", "loss", "learning_rate"}


@pytest.mark.parametrize("fail_at", [1, 2, 3, 6, 8])
def test_an_interrupted_run_continues_to_the_same_weights_and_history(tmp_path, fail_at):
    whole = Regression()
    history = run_task(whole)
    run = Run(Checkpoint(tmp_path / "kept", "mark"))
    interrupted = Regression(fail_at)
    with pytest.raises(KeyboardInterrupt):
        run_task(interrupted, run=run)
    assert not interrupted.is_open  # the context of the epoch was closed
    resumed = Regression()
    assert run_task(resumed, run=run) == history
    assert resumed.n_losses == 8 - 2 * ((fail_at - 1) // 2)
    assert all(torch.equal(value, weights(resumed)[name]) for name, value in weights(whole).items())
    assert run_task(Regression(fail_at=1), run=run) == history  # nothing is left to do


def test_a_watcher_can_halt_the_training():
    def watch(epochs):
        for epoch in epochs:
            if epoch == 2:
                raise InterruptedError("training was halted")
            yield epoch

    task = Regression()
    with pytest.raises(InterruptedError, match="halted"):
        run_task(task, run=Run(watch=watch))
    assert task.n_losses == 4


def test_a_gradient_is_clipped_to_its_largest_norm():
    def step(clip_norm):
        task = Regression()
        optimizer = torch.optim.SGD(task.network.parameters(), 1.0)
        train(task, optimizer, Schedule(1, 1.0, lambda share: float(share == 0), clip_norm))
        return torch.cat([value.ravel() for value in weights(task).values()]).norm()

    assert step(0.0) > 1
    assert step(0.01) == pytest.approx(0.01, rel=1e-3)


def test_training_that_diverges_is_an_error_that_says_what_to_do():
    with pytest.raises(
        ModelError, match=r"after epoch \d+: training diverged; use a learning_rate"
    ):
        run_task(Regression(), epochs=60, rate=1e6)


def test_the_progress_bar_shows_title_and_loss(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run_task(Regression(), run=Run(progress="points"))
    shown = capsys.readouterr().err
    assert "points" in shown
    assert "loss=" in shown
    run_task(Regression())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shape", [cosine, linear])
def test_a_rate_falls_from_the_highest_to_0(shape):
    rates = [shape(share) for share in np.linspace(0, 1, 101)]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[50], rates[-1]) == pytest.approx((1, 0.5, 0))
    assert Schedule(1, 0.1, shape).rate(0.5) == pytest.approx(0.05)


def test_a_rate_with_warm_up_rises_for_a_tenth_then_falls_to_0():
    rates = [warm_up_then_cosine(share) for share in np.linspace(0, 1, 101)]
    peak = int(np.argmax(rates))
    assert peak == 10
    assert max(rates) == pytest.approx(1)
    assert rates[:peak] == sorted(rates[:peak])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert rates[0] > 0
    assert rates[-1] == pytest.approx(0)


def test_a_task_has_to_give_batches_and_losses():
    task = Task(nn.Linear(1, 1))
    with pytest.raises(NotImplementedError):
        task.open_epoch(0)
    with pytest.raises(NotImplementedError):
        task.losses(None)
    assert (task.weight(None), task.validate(0)) == (1.0, {})
