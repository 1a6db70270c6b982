"""What training begins with: chance weights, the model in the box, or a model of one's own."""

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
from hilander.linkage.storage import PRETRAINED, StoredModel, write_model
from hilander.training.evidence.recipe import EvidencePlan, init_network, learn_by_evidence
from hilander.training.paper.recipe import fingerprint
from hilander.training.plans import make_plan

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
    """From chance weights; not to be changed."""
    return learn_by_evidence(*labelled, PLAN)


@pytest.fixture
def kept(learned, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    write_model(StoredModel(learned.network, {}, {}), folder)
    return folder


def equal(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


def distance(one, two):
    ours, theirs = one.state_dict(), two.state_dict()
    return sum(float((ours[k] - theirs[k]).square().sum()) for k in ours if k.endswith("weight"))


# Training further.


def test_a_start_is_the_weights_of_its_folder(learned, kept):
    assert equal(init_network(replace(PLAN, start=str(kept))), learned.network)
    assert equal(init_network(PLAN), make_evidence_network(PLAN.network, 0))


def test_a_start_with_a_network_for_few_points_is_that_one(tmp_path):
    both = make_evidence_network(replace(PLAN.network, small_set_points=100), seed=1)
    write_model(StoredModel(both, {}, {}), tmp_path)
    begun = init_network(replace(PLAN, start=str(tmp_path)))
    assert equal(begun, both.small_set)
    assert begun.settings == PLAN.network


def test_training_goes_on_gently_from_the_weights_it_starts_with(labelled, learned, kept):
    more = learn_by_evidence(*labelled, replace(PLAN, start=str(kept)))
    assert len(more.history) == 4 * 2 < len(learned.history) == 4 * 3
    assert max(row["learning_rate"] for row in more.history) < 0.5 * LEARNING.learning_rate
    before, after = learned.network.state_dict(), more.network.state_dict()
    for key in before:
        if key.endswith(("centre", "scale")):  # what the weights are made for
            assert torch.equal(before[key], after[key])
    first = make_evidence_network(PLAN.network, 0)
    assert 0 < distance(learned.network, more.network) < 0.5 * distance(first, learned.network)


@pytest.mark.parametrize("changes", [{"hidden": 9}, {"hidden": 8, "members": 2}])
def test_a_start_of_another_shape_is_refused_with_advice(labelled, kept, changes):
    shape = replace(PLAN, start=str(kept), network=EvidenceSettings(**changes))
    with pytest.raises(ModelError, match=r'kept is not of the shape .*use start="none"'):
        learn_by_evidence(*labelled, shape)


def test_a_start_of_the_papers_kind_is_refused(tmp_path):
    write_model(StoredModel(Lander(NetworkSettings(16, hidden=8)), {}, {}), tmp_path)
    with pytest.raises(ModelError, match="is not of the shape that is to be trained"):
        init_network(replace(PLAN, start=str(tmp_path)))


def test_a_checkpoint_is_not_taken_up_if_another_model_stands_where_it_started(labelled, kept):
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


def test_the_papers_model_refuses_a_start(labelled):
    with pytest.raises(SettingError, match=r'start=.box. is for method="evidence".*leave it out'):
        make_plan(HiLander(method="paper", start="pretrained"), *labelled)
    make_plan(HiLander(method="paper", start="none"), *labelled)


# Which start is taken.


def test_training_starts_from_nothing_unless_it_is_told_otherwise(labelled, tmp_path):
    for asked, taken in (("auto", None), ("none", None), ("pretrained", str(PRETRAINED))):
        assert make_plan(HiLander(start=asked), *labelled).start == taken
    claim_folder(tmp_path, "model")
    for folder in (tmp_path, str(tmp_path)):
        assert make_plan(HiLander(start=folder), *labelled).start == str(tmp_path)


def test_the_model_in_the_box_has_the_shape_that_is_trained_by_default(labelled):
    plan = make_plan(HiLander(start="pretrained"), *labelled)
    assert init_network(plan).settings.is_shaped(plan.network)


def test_what_super_nodes_show_is_the_business_of_the_model_that_is_started_from(
    labelled, tmp_path
):
    shape = EvidenceSettings(hidden=8, relative_sizes=True)
    write_model(StoredModel(make_evidence_network(shape, 0), {}, {}), tmp_path)
    first = make_evidence_network(shape, 0)
    more = learn_by_evidence(*labelled, replace(PLAN, start=str(tmp_path)))
    assert more.network.settings == shape
    assert len(more.history) == 2 * 2
    assert not equal(more.network.points, first.points)
    assert equal(more.network.clusters, first.clusters)  # one set would unteach them sizes


# As a user meets it.


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


def test_a_model_of_ones_own_is_trained_further_and_the_start_is_kept_on_disk(labelled, tmp_path):
    folder = quick().fit(*labelled).save(tmp_path / "first")
    more = quick(start=folder).fit(*labelled)
    assert more.start is folder  # as scikit-learn wants it
    assert len(more.history_) == 4 * 2
    again = HiLander.load(more.save(tmp_path / "second"), device="cpu")
    assert again.start == str(folder)
    assert equal(again.network_, more.network_)
    np.testing.assert_array_equal(again.predict(labelled[0]), more.predict(labelled[0]))


def test_a_start_that_is_not_there_is_named(labelled, tmp_path):
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


def test_the_command_starts_where_it_is_told(train, tmp_path):
    assert train("plain", "--hidden", "8", "--start", "none") == 0
    assert train("more", "--hidden", "8", "--start", f"{tmp_path}/plain") == 0
    assert train("pretrained", "--start", "pretrained") == 0
    plain, more, box = (HiLander.load(tmp_path / name) for name in ("plain", "more", "pretrained"))
    assert (plain.start, more.start, box.start) == ("none", f"{tmp_path}/plain", "pretrained")
    assert [len(model.history_) for model in (plain, more, box)] == [12, 8, 4]


def test_the_command_refuses_a_start_of_another_shape_and_for_the_papers_model(
    train, tmp_path, capsys
):
    assert train("m", "--hidden", "9", "--start", "pretrained") == 2
    assert 'use start="none"' in capsys.readouterr().err
    assert train("m", "--method", "paper", "--start", "pretrained") == 2
    assert "--start box is for --method evidence" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()
