"""The weights that training starts from: random, the pretrained model's, or those of a folder."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from hilander import HiLander
from hilander.cli.main import main
from hilander.errors import ModelError, SettingError
from hilander.hierarchy.rules import Rules
from hilander.io.writing import claim_folder
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import EvidenceLearning, make_evidence_network
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.storage import PRETRAINED, StoredNetwork, write_network
from hilander.training.evidence.network_training import init_network
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.recipe import learn_by_evidence
from hilander.training.methods import find_method
from hilander.training.stages import fingerprint

pytestmark = pytest.mark.usefixtures("small_steps")
LEARNING = EvidenceLearning(epochs=3, batch_size=64, learning_rate=0.02, most_points=60)
PLAN = EvidencePlan(
    network=EvidenceSettings(hidden=8),
    learning=LEARNING,
    rules=Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True),
    tune=(),
    device="cpu",
)


@pytest.fixture(scope="module")
def learned(labelled, small_steps):
    """From random weights; not to be changed."""
    return learn_by_evidence(*labelled, PLAN)


@pytest.fixture
def kept(learned, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    write_network(StoredNetwork(learned.network, {}, {}), folder)
    return folder


def make_plan(estimator, X, y):
    return find_method(estimator.method).plan(estimator, X, y)


def equal(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


def distance(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return sum(float((ours[k] - theirs[k]).square().sum()) for k in ours if k.endswith("weight"))


# Training from a start model.


def test_training_starts_from_the_weights_in_the_folder(learned, kept):
    assert equal(init_network(replace(PLAN, start=str(kept))), learned.network)
    assert equal(init_network(PLAN), make_evidence_network(PLAN.network, 0))


def test_a_start_model_with_a_network_for_small_sets_gives_that_network(tmp_path):
    both = make_evidence_network(replace(PLAN.network, small_set_points=100), seed=1)
    write_network(StoredNetwork(both, {}, {}), tmp_path)
    begun = init_network(replace(PLAN, start=str(tmp_path)))
    assert equal(begun, both.small_set)
    assert begun.settings == PLAN.network


def test_a_start_model_is_trained_for_fewer_epochs_at_a_lower_rate(labelled, learned, kept):
    more = learn_by_evidence(*labelled, replace(PLAN, start=str(kept)))
    assert len(more.history) == 2 * 2 < len(learned.history) == 2 * 3
    assert max(row["learning_rate"] for row in more.history) < 0.5 * LEARNING.learning_rate
    before, after = learned.network.state_dict(), more.network.state_dict()
    for key in before:
        if key.endswith(("centre", "scale")):  # the weights were trained with these
            assert torch.equal(before[key], after[key])
    first = make_evidence_network(PLAN.network, 0)
    assert 0 < distance(learned.network, more.network) < 0.5 * distance(first, learned.network)


@pytest.mark.parametrize("changes", [{"hidden": 9}, {"hidden": 8, "members": 2}])
def test_a_start_model_of_another_shape_is_refused_with_advice(labelled, kept, changes):
    shape = replace(PLAN, start=str(kept), network=EvidenceSettings(**changes))
    with pytest.raises(ModelError, match=r'kept is not of the shape .*use start="none"'):
        learn_by_evidence(*labelled, shape)


def test_a_start_model_of_the_published_method_is_refused(tmp_path):
    write_network(StoredNetwork(Lander(NetworkSettings(16, hidden=8)), {}, {}), tmp_path)
    with pytest.raises(ModelError, match="is not of the shape that is to be trained"):
        init_network(replace(PLAN, start=str(tmp_path)))


def test_a_checkpoint_is_not_used_if_the_start_model_changed(labelled, kept):
    plan = replace(PLAN, start=str(kept))
    before = fingerprint(*labelled, plan)
    assert fingerprint(*labelled, plan) == before
    weights = next(kept.glob("*.safetensors"))
    held = weights.read_bytes()
    try:
        weights.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
        assert fingerprint(*labelled, plan) != before
    finally:
        weights.write_bytes(held)


def test_the_published_method_refuses_a_start_model(labelled):
    with pytest.raises(
        SettingError, match=r'start=.pretrained. is for method="evidence".*leave it out'
    ):
        make_plan(HiLander(method="paper", start="pretrained"), *labelled)
    make_plan(HiLander(method="paper", start="none"), *labelled)


# Which start model is used.


def test_training_starts_from_random_weights_by_default(labelled, tmp_path):
    for asked, taken in (("auto", None), ("none", None), ("pretrained", str(PRETRAINED))):
        assert make_plan(HiLander(start=asked), *labelled).start == taken
    claim_folder(tmp_path, "model")
    for folder in (tmp_path, str(tmp_path)):
        assert make_plan(HiLander(start=folder), *labelled).start == str(tmp_path)


def test_the_pretrained_model_has_the_default_shape(labelled):
    plan = make_plan(HiLander(start="pretrained"), *labelled)
    assert init_network(plan).settings.is_shaped(plan.network)


# With the estimator and the command.


def quick(**changes):
    return HiLander(
        **{
            "hidden": 8,
            "learning": LEARNING,
            "p_tau": 0.5,
            "device": "cpu",
            "prior": "none",
            **changes,
        }
    )


def test_a_model_folder_is_trained_further_and_its_path_is_stored(labelled, tmp_path):
    folder = quick().fit(*labelled).save(tmp_path / "first")
    more = quick(start=folder).fit(*labelled)
    assert more.start is folder  # scikit-learn asks that parameters are not changed
    assert len(more.history_) == 2 * 2 + 3  # merges are learned anew
    again = HiLander.load(more.save(tmp_path / "second"), device="cpu")
    assert again.start == str(folder)
    assert equal(again.network_, more.network_)
    np.testing.assert_array_equal(again.predict(labelled[0]), more.predict(labelled[0]))


def test_a_missing_start_model_is_named(labelled, tmp_path):
    with pytest.raises((ModelError, SettingError), match="bxo"):
        quick(start=tmp_path / "bxo").fit(*labelled)


@pytest.fixture
def train(labelled, tmp_path, monkeypatch):
    small = partial(EvidenceLearning, most_points=60)
    monkeypatch.setattr(evidence_learning, "EvidenceLearning", small)  # no option for it
    np.savez(tmp_path / "train.npz", features=labelled[0], labels=labelled[1])

    def run(name, *options):
        quick = ["--epochs", "3", "--batch-size", "64", "--p-tau", "0.5", "--quiet"]
        return main(
            ["train", f"{tmp_path}/train.npz", "-o", f"{tmp_path}/{name}", *quick, *options]
        )

    return run


def test_the_command_has_an_option_for_the_start_model(train, tmp_path):
    assert train("plain", "--hidden", "8", "--start", "none") == 0
    assert train("more", "--hidden", "8", "--start", f"{tmp_path}/plain") == 0
    assert train("pretrained", "--start", "pretrained") == 0
    plain, more, from_pretrained = (
        HiLander.load(tmp_path / name) for name in ("plain", "more", "pretrained")
    )
    assert (plain.start, more.start, from_pretrained.start) == (
        "none",
        f"{tmp_path}/plain",
        "pretrained",
    )
    assert [len(model.history_) for model in (plain, more, from_pretrained)] == [9, 7, 7]


def test_the_command_refuses_a_start_model_that_does_not_fit(train, tmp_path, capsys):
    assert train("m", "--hidden", "9", "--start", "pretrained") == 2
    assert 'use start="none"' in capsys.readouterr().err
    assert train("m", "--method", "paper", "--start", "pretrained") == 2
    assert "--method evidence" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
