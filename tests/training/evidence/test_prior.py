"""A trained model as adviser of the one that is learned."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hilander.training.plans import make_plan
from scipy.special import logit

from hilander import HiLander
from hilander.cli.main import main
from hilander.errors import ModelError, SettingError
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.rules import Rules
from hilander.io.writing import claim_folder
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.scorer import EvidenceScorer, average_log_odds
from hilander.linkage.evidence.training import EvidenceLearning, make_evidence_network
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.storage import PRETRAINED, StoredModel, write_model
from hilander.synthetic.identities import make_identities
from hilander.training.evidence.prior import (
    LEAST_PRIOR_WEIGHT,
    PriorModel,
    read_prior,
    weight_of_trained,
)
from hilander.training.evidence.recipe import EvidencePlan, init_network, learn_by_evidence
from hilander.training.paper.recipe import fingerprint

pytestmark = pytest.mark.usefixtures("small_steps")
LEARNING = EvidenceLearning(epochs=3, batch_size=64, learning_rate=0.02, most_points=60)
RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)
PLAN = EvidencePlan(
    network=EvidenceSettings(hidden=8), learning=LEARNING, rules=RULES, tune=(), device="cpu"
)
OWN, OTHER = (make_evidence_network(EvidenceSettings(hidden=8), seed) for seed in (0, 1))


def advise(weight, network=OTHER):
    return PriorModel(network, p_tau=0.8, p_tau_merge=0.7, own_weight=weight)


def keep(folder, network=OTHER, **rules):
    folder.mkdir()
    thresholds = {"p_tau": 0.8, "p_tau_merge": 0.7, **rules}
    write_model(StoredModel(network, {}, {"rules": thresholds}), folder)
    return str(folder)


def score(network, features):
    graph = build_knn_graph(features, 6)
    return EvidenceScorer(network, "cpu")(graph, start_nodes(features)).linkage


# How two opinions become one.


def test_log_odds_are_averaged_by_weight(labelled):
    own, other = score(OWN, labelled[0]), score(OTHER, labelled[0])
    both = score(advise(0.25).join(OWN), labelled[0])
    np.testing.assert_allclose(logit(both), 0.25 * logit(own) + 0.75 * logit(other), atol=1e-4)
    np.testing.assert_allclose(score(advise(1.0).join(OWN), labelled[0]), own, atol=1e-5)


def test_who_is_certain_does_not_silence_the_other():
    sure, unsure = np.array([[1.0, 0.0]], np.float32), np.array([[0.2, 0.8]], np.float32)
    found = average_log_odds([(0.5, sure), (0.5, unsure)])
    assert np.isfinite(logit(found)).all()
    assert found[0, 0] < 1
    assert found[0, 1] > 0


def test_an_adviser_judges_few_points_by_its_network_for_those(labelled):
    prior = make_evidence_network(EvidenceSettings(hidden=8, small_set_points=10_000), 2)
    asked = advise(0.25, prior).join(OWN).ensemble_for(100)
    assert [weight for weight, _ in asked] == [0.25, 0.75]
    assert torch.equal(asked[1][1].points[0].last.bias, prior.small_set.points[0].last.bias)


def test_an_adviser_may_have_an_adviser():
    asked = advise(0.5, advise(0.5).join(OTHER)).join(OWN).ensemble_for(100)
    assert [weight for weight, _ in asked] == [0.5, 0.25, 0.25]


def test_the_more_there_is_to_learn_from_the_less_the_adviser_weighs(tmp_path):
    assert (
        weight_of_trained(5, 100) < weight_of_trained(5, 1000) < weight_of_trained(50, 1000) == 0.5
    )
    folder = keep(tmp_path / "a")
    small_set, many = read_prior(folder, 20, 200), read_prior(folder, 60, 600)
    assert 0 < small_set.own_weight < many.own_weight < 1 - LEAST_PRIOR_WEIGHT
    assert read_prior(folder, 1000, 20_000) is None
    assert read_prior(None, 20, 200) is None


def test_an_adviser_that_was_named_and_is_not_asked_is_told_of():
    many = np.zeros((4000, 2), np.float32), np.arange(4000) // 40
    told = "adviser='box' is not asked: beside what 4,000 points of 100 identities .* 20%.*25%"
    with pytest.warns(UserWarning, match=told) as caught:
        make_plan(HiLander(prior="pretrained"), *many)
    assert "start='box'" in str(caught[0].message)
    for asked, n in (("auto", 4000), ("none", 4000), ("pretrained", 3000)):
        make_plan(HiLander(prior=asked), many[0][:n], many[1][:n])  # warnings are errors


@pytest.mark.filterwarnings("default")
def test_the_command_says_that_an_adviser_is_not_asked(labelled, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hilander.training.evidence.prior.LEVEL_POINTS", 10)
    monkeypatch.setattr("hilander.training.evidence.prior.LEVEL_IDENTITIES", 1)
    np.savez(tmp_path / "train.npz", features=labelled[0], labels=labelled[1])
    usual = ["train", f"{tmp_path}/train.npz", "--epochs", "1", "--p-tau", "0.5"]
    assert main([*usual, "-o", f"{tmp_path}/m", "--prior", "pretrained"]) == 0
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("hilander: warning: adviser='box' is not asked")
    assert "prior" not in HiLander.load(tmp_path / "m").summary_
    assert main([*usual, "-o", f"{tmp_path}/m"]) == 0
    assert capsys.readouterr().err == ""


# In training.


def test_what_is_learned_is_joined_with_its_adviser(labelled, tmp_path):
    alone = learn_by_evidence(*labelled, PLAN)
    advised = learn_by_evidence(*labelled, replace(PLAN, prior=keep(tmp_path / "a")))
    ours, theirs = alone.network.state_dict(), advised.network.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert torch.equal(theirs["adviser.points.0.last.bias"], OTHER.points[0].last.bias)
    assert advised.summary["prior"] == "a"
    assert advised.summary["own_weight"] == advised.network.settings.own_weight
    assert "prior" not in alone.summary
    assert alone.network.prior is None


def test_where_nothing_can_be_tried_the_thresholds_are_those_of_the_adviser(labelled, tmp_path):
    plan = replace(PLAN, prior=keep(tmp_path / "a"), val_fraction=0.0)
    named = learn_by_evidence(*labelled, plan).rules
    assert (named.p_tau, named.p_tau_merge) == (RULES.p_tau, 0.7)
    free = learn_by_evidence(*labelled, replace(plan, tune=("p_tau",))).rules
    assert (free.p_tau, free.p_tau_merge) == (0.8, 0.7)


def test_the_usual_p_tau_lies_between_that_of_one_alone_and_of_the_adviser():
    assert advise(0.0).default_p_tau(0.55) == pytest.approx(0.8)
    assert advise(1.0).default_p_tau(0.55) == pytest.approx(0.55)
    assert 0.55 < advise(0.5).default_p_tau(0.55) < 0.8


def test_an_adviser_of_the_papers_kind_is_refused(labelled, tmp_path):
    folder = keep(tmp_path / "paper", Lander(NetworkSettings(16, hidden=8)), p_tau_merge=None)
    with pytest.raises(ModelError, match='method="paper", an adviser has to be of "evidence"'):
        learn_by_evidence(*labelled, replace(PLAN, prior=folder))


def test_a_checkpoint_is_not_taken_up_under_another_adviser(labelled, tmp_path):
    one = replace(PLAN, prior=keep(tmp_path / "a"))
    before = fingerprint(*labelled, one)
    weights = next((tmp_path / "a").glob("*.safetensors"))
    held = weights.read_bytes()
    weights.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    assert fingerprint(*labelled, one) != before


def test_who_trains_an_advised_model_further_leaves_its_adviser_behind(tmp_path):
    folder = keep(tmp_path / "advised", advise(0.5).join(OWN))
    begun = init_network(replace(PLAN, start=folder))
    assert begun.prior is None
    assert begun.settings == PLAN.network


# As a user meets it.


def test_the_box_advises_unless_one_says_otherwise(labelled, tmp_path):
    for asked, taken in (
        ("auto", str(PRETRAINED)),
        ("pretrained", str(PRETRAINED)),
        ("none", None),
    ):
        assert make_plan(HiLander(prior=asked), *labelled).prior == taken
    claim_folder(tmp_path, "model")
    assert make_plan(HiLander(prior=tmp_path), *labelled).prior == str(tmp_path)
    with pytest.raises(SettingError, match=r"adviser=.*bxo. is no folder"):
        make_plan(HiLander(prior=tmp_path / "bxo"), *labelled)
    with pytest.raises(SettingError, match=r"adviser=.box. is for method=.evidence."):
        make_plan(HiLander(method="paper", prior="pretrained"), *labelled)


def test_an_advised_model_is_saved_and_loaded_whole(labelled, tmp_path):
    model = HiLander(hidden=8, learning=LEARNING, p_tau=0.5, device="cpu").fit(*labelled)
    again = HiLander.load(model.save(tmp_path / "m"), device="cpu")
    assert again.network_.settings == model.network_.settings
    assert again.network_.settings.prior.small_set_points > 0
    np.testing.assert_array_equal(again.predict(labelled[0]), model.predict(labelled[0]))


def test_a_handful_of_identities_is_no_reason_to_group_worse_than_the_box():
    train = make_identities(n_identities=6, size=12, dim=32, spread=1.0, seed=0)
    X, y = make_identities(n_identities=100, size=12, dim=32, spread=1.0, seed=1)
    advised = HiLander(learning=LEARNING, device="cpu").fit(*train)
    assert 0 < advised.network_.settings.own_weight < 0.3
    assert advised.score(X, y) > HiLander.pretrained().score(X, y) > 0.8


def test_labels_too_few_to_judge_whitening_leave_it_to_each_set(labelled, tmp_path):
    X, y = labelled
    small_set = y < 12
    quick = {"hidden": 8, "learning": LEARNING, "p_tau": 0.5, "device": "cpu"}
    model = HiLander(**quick).fit(X[small_set], y[small_set])
    assert model.preparation_.whitens_each_set
    assert "own clusters where that helps" in model.preparation_.describe()
    assert HiLander.load(model.save(tmp_path / "m")).preparation_.whitens_each_set
    assert (
        not HiLander(**quick, prior="none")
        .fit(X[small_set], y[small_set])
        .preparation_.whitens_each_set
    )
    assert not HiLander(**quick).fit(X, y).preparation_.whitens_each_set


def test_a_stretched_space_is_whitened_with_a_handful_of_identities_too(monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 25)
    rng = np.random.default_rng(0)
    stretch = np.where(np.arange(48) < 12, 3.0, 0.3)

    def draw(n):
        y = np.repeat(np.arange(n), 20)
        return rng.normal(size=(n, 48))[y] + rng.normal(size=(len(y), 48)) * stretch, y

    train, (X, y) = draw(4), draw(60)
    model = HiLander(learning=LEARNING, device="cpu").fit(*train)
    box = HiLander.pretrained().score(X, y)
    plain = HiLander.pretrained().set_params(whiten=False).score(X, y)
    assert box > plain + 0.1  # or there would be nothing to lose
    assert model.score(X, y) > box - 0.05


def test_two_identities_of_many_points_are_still_two_identities():
    assert weight_of_trained(2, 10_000) < weight_of_trained(10, 1_000)


@pytest.mark.parametrize("name", ["start", "prior"])
@pytest.mark.parametrize("value", [None, 5, True])
def test_what_is_no_model_at_all_is_refused_by_name(labelled, name, value):
    with pytest.raises(SettingError, match=f"{name}=.*is no folder; use"):
        make_plan(HiLander(**{name: value}), *labelled)


@pytest.mark.parametrize("name", ["start", "prior"])
def test_a_folder_of_another_kind_is_no_model_to_learn_with(labelled, tmp_path, name):
    run = claim_folder(tmp_path / "run", "run")
    message = rf"{name}=.*/run is a run folder, expected a model folder; check the path"
    with pytest.raises(SettingError, match=message):
        make_plan(HiLander(**{name: run}), *labelled)
    with pytest.raises(SettingError, match=f"{name}=.*has no hilander.json, expected a model"):
        make_plan(HiLander(**{name: tmp_path}), *labelled)


def test_the_command_takes_an_adviser_and_says_which_it_was(labelled, tmp_path, capsys):
    np.savez(tmp_path / "train.npz", features=labelled[0], labels=labelled[1])
    usual = ["train", f"{tmp_path}/train.npz", "--epochs", "2", "--p-tau", "0.5", "--quiet"]
    assert main([*usual, "-o", f"{tmp_path}/alone", "--prior", "none"]) == 0
    assert main([*usual, "-o", f"{tmp_path}/both", "--prior", f"{tmp_path}/alone"]) == 0
    assert HiLander.load(tmp_path / "alone").network_.prior is None
    assert HiLander.load(tmp_path / "both").network_.prior is not None
    assert main(["info", f"{tmp_path}/both", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["prior"] == "alone"
    loud = [one for one in usual if one != "--quiet"]
    assert main([*loud, "-o", f"{tmp_path}/loud"]) == 0
    assert "advised by the model 'box', which weighs" in capsys.readouterr().out
    assert 0 < told["own_weight"] < 1
    assert main([*usual, "-o", f"{tmp_path}/p", "--method", "paper", "--prior", "pretrained"]) == 2
    assert "--adviser box is for --method evidence" in capsys.readouterr().err
    assert main(["cluster", f"{tmp_path}/train.npz", "-o", f"{tmp_path}/run", "--quiet"]) == 0
    assert main([*usual, "-o", f"{tmp_path}/p", "--prior", f"{tmp_path}/run"]) == 2
    assert "run is a run folder, expected a model folder" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()
