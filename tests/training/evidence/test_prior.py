"""A prior model, averaged with the one that is trained."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import logit

from hilander import HiLander
from hilander.cli.main import main
from hilander.errors import ModelError, SettingError
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.rules import DEFAULT_MERGE, Rules
from hilander.io.writing import claim_folder
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.averaging import average_log_odds
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.registry import FORMER_SCHEMA, schema_hash
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning, make_evidence_network
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.storage import (
    DESCRIPTION_FILE,
    PRETRAINED,
    StoredNetwork,
    write_network,
)
from hilander.synthetic.identities import make_identities
from hilander.training.evidence.network_training import init_network
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.prior import (
    LEAST_PRIOR_WEIGHT,
    PriorModel,
    read_prior,
    weight_of_trained,
)
from hilander.training.evidence.recipe import learn_by_evidence
from hilander.training.methods import find_method
from hilander.training.stages import fingerprint

pytestmark = pytest.mark.usefixtures("small_steps")
LEARNING = EvidenceLearning(epochs=3, batch_size=64, learning_rate=0.02, most_points=60)
RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)
PLAN = EvidencePlan(
    network=EvidenceSettings(hidden=8), learning=LEARNING, rules=RULES, tune=(), device="cpu"
)
OWN, OTHER = (make_evidence_network(EvidenceSettings(hidden=8), seed) for seed in (0, 1))


def make_plan(estimator, X, y):
    return find_method(estimator.method).plan(estimator, X, y)


def make_prior(weight, network=OTHER):
    return PriorModel(network, p_tau=0.8, p_tau_merge=0.7, own_weight=weight)


def store(folder, network=OTHER, **rules):
    folder.mkdir()
    thresholds = {"p_tau": 0.8, "p_tau_merge": 0.7, **rules}
    write_network(StoredNetwork(network, {}, {"rules": thresholds}), folder)
    return str(folder)


def score(network, features):
    graph = build_knn_graph(features, 6)
    scorer = EvidenceScorer(network, "cpu")
    scorer.bind_points(features)
    return scorer(graph, start_nodes(features)).linkage


# The mean of two networks.


def test_log_odds_are_averaged_by_weight(labelled):
    own, other = score(OWN, labelled[0]), score(OTHER, labelled[0])
    both = score(make_prior(0.25).join(OWN), labelled[0])
    np.testing.assert_allclose(logit(both), 0.25 * logit(own) + 0.75 * logit(other), atol=1e-4)
    np.testing.assert_allclose(score(make_prior(1.0).join(OWN), labelled[0]), own, atol=1e-5)


def test_a_probability_of_0_or_1_leaves_the_other_some_weight():
    certain, uncertain = np.array([[1.0, 0.0]], np.float32), np.array([[0.2, 0.8]], np.float32)
    found = average_log_odds([(0.5, certain), (0.5, uncertain)])
    assert np.isfinite(logit(found)).all()
    assert found[0, 0] < 1
    assert found[0, 1] > 0


def test_a_prior_model_uses_its_network_for_small_sets(labelled):
    prior = make_evidence_network(EvidenceSettings(hidden=8, small_set_points=10_000), 2)
    ensemble = make_prior(0.25, prior).join(OWN).ensemble_for(100)
    assert [weight for weight, _ in ensemble] == [0.25, 0.75]
    assert torch.equal(ensemble[1][1].points[0].last.bias, prior.small_set.points[0].last.bias)


def test_a_prior_model_may_have_a_prior_model():
    ensemble = make_prior(0.5, make_prior(0.5).join(OTHER)).join(OWN).ensemble_for(100)
    assert [weight for weight, _ in ensemble] == [0.5, 0.25, 0.25]


def test_the_weight_of_the_prior_model_falls_as_the_training_set_grows(tmp_path):
    assert (
        weight_of_trained(5, 100) < weight_of_trained(5, 1000) < weight_of_trained(50, 1000) == 0.5
    )
    folder = store(tmp_path / "a")
    few, many = read_prior(folder, 20, 200), read_prior(folder, 60, 600)
    assert 0 < few.own_weight < many.own_weight < 1 - LEAST_PRIOR_WEIGHT
    assert read_prior(folder, 1000, 20_000) is None
    assert read_prior(None, 20, 200) is None


def test_a_named_prior_model_that_is_not_used_gives_a_warning():
    many = np.zeros((4000, 2), np.float32), np.arange(4000) // 40
    message = "prior='pretrained' is not used: with 4,000 training points of 100 .* 20%.*25%"
    with pytest.warns(UserWarning, match=message) as caught:
        make_plan(HiLander(prior="pretrained"), *many)
    assert "start='pretrained'" in str(caught[0].message)
    for asked, n in (("auto", 4000), ("none", 4000), ("pretrained", 3000)):
        make_plan(HiLander(prior=asked), many[0][:n], many[1][:n])  # warnings are errors


@pytest.mark.filterwarnings("default")
def test_the_command_warns_of_a_prior_model_that_is_not_used(
    labelled, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("hilander.training.evidence.prior.EQUAL_WEIGHT_POINTS", 10)
    monkeypatch.setattr("hilander.training.evidence.prior.EQUAL_WEIGHT_IDENTITIES", 1)
    np.savez(tmp_path / "train.npz", features=labelled[0], labels=labelled[1])
    command = ["train", f"{tmp_path}/train.npz", "--epochs", "1", "--p-tau", "0.5"]
    assert main([*command, "-o", f"{tmp_path}/m", "--prior", "pretrained"]) == 0
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith("hilander: warning: prior='pretrained' is not used")
    assert "prior" not in HiLander.load(tmp_path / "m").summary_
    assert main([*command, "-o", f"{tmp_path}/m"]) == 0
    assert capsys.readouterr().err == ""


# In training.


def test_a_trained_network_is_joined_with_its_prior_model(labelled, tmp_path):
    alone = learn_by_evidence(*labelled, PLAN)
    joined = learn_by_evidence(*labelled, replace(PLAN, prior=store(tmp_path / "a")))
    ours, theirs = alone.network.state_dict(), joined.network.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert torch.equal(theirs["prior.points.0.last.bias"], OTHER.points[0].last.bias)
    assert joined.summary["prior"] == "a"
    assert joined.summary["own_weight"] == joined.network.settings.own_weight
    assert "prior" not in alone.summary
    assert alone.network.prior is None


def test_without_validation_the_thresholds_are_those_of_the_prior_model(labelled, tmp_path):
    plan = replace(PLAN, prior=store(tmp_path / "a"), val_fraction=0.0)
    fixed = learn_by_evidence(*labelled, plan).rules
    assert (fixed.p_tau, fixed.p_tau_merge) == (RULES.p_tau, 0.7)
    free = learn_by_evidence(*labelled, replace(plan, tune=("p_tau",))).rules
    assert (free.p_tau, free.p_tau_merge) == (0.8, 0.7)


def test_the_default_p_tau_lies_between_those_of_both_networks():
    assert make_prior(0.0).default_p_tau(0.55) == pytest.approx(0.8)
    assert make_prior(1.0).default_p_tau(0.55) == pytest.approx(0.55)
    assert 0.55 < make_prior(0.5).default_p_tau(0.55) < 0.8


def test_the_merge_threshold_of_a_prior_of_earlier_versions_is_the_default(tmp_path):
    folder = store(tmp_path / "a", p_tau_merge=0.93)
    assert read_prior(folder, 20, 200).p_tau_merge == 0.93
    path = tmp_path / "a" / DESCRIPTION_FILE
    path.write_text(path.read_text().replace(schema_hash(), FORMER_SCHEMA))
    prior = read_prior(folder, 20, 200)
    assert (prior.p_tau, prior.p_tau_merge) == (0.8, DEFAULT_MERGE)


def test_a_prior_model_of_the_published_method_is_refused(labelled, tmp_path):
    folder = store(tmp_path / "paper", Lander(NetworkSettings(16, hidden=8)), p_tau_merge=None)
    with pytest.raises(ModelError, match='method="paper", a prior model has to be of "evidence"'):
        learn_by_evidence(*labelled, replace(PLAN, prior=folder))


def test_a_checkpoint_is_not_used_if_the_prior_model_changed(labelled, tmp_path):
    one = replace(PLAN, prior=store(tmp_path / "a"))
    before = fingerprint(*labelled, one)
    weights = next((tmp_path / "a").glob("*.safetensors"))
    held = weights.read_bytes()
    weights.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    assert fingerprint(*labelled, one) != before


def test_a_start_model_is_trained_without_its_prior_model(tmp_path):
    folder = store(tmp_path / "joined", make_prior(0.5).join(OWN))
    begun = init_network(replace(PLAN, start=folder))
    assert begun.prior is None
    assert begun.settings == PLAN.network


# With the estimator and the command.


def test_the_pretrained_model_is_the_default_prior_model(labelled, tmp_path):
    for asked, taken in (
        ("auto", str(PRETRAINED)),
        ("pretrained", str(PRETRAINED)),
        ("none", None),
    ):
        assert make_plan(HiLander(prior=asked), *labelled).prior == taken
    claim_folder(tmp_path, "model")
    assert make_plan(HiLander(prior=tmp_path), *labelled).prior == str(tmp_path)
    with pytest.raises(SettingError, match=r"prior=.*bxo. is not a folder"):
        make_plan(HiLander(prior=tmp_path / "bxo"), *labelled)
    with pytest.raises(SettingError, match=r"prior=.pretrained. is for method=.evidence."):
        make_plan(HiLander(method="paper", prior="pretrained"), *labelled)


def test_a_model_is_saved_and_loaded_with_its_prior_model(labelled, tmp_path):
    model = HiLander(hidden=8, learning=LEARNING, p_tau=0.5, device="cpu").fit(*labelled)
    again = HiLander.load(model.save(tmp_path / "m"), device="cpu")
    assert again.network_.settings == model.network_.settings
    assert again.network_.settings.prior == HiLander.pretrained().network_.settings
    np.testing.assert_array_equal(again.predict(labelled[0]), model.predict(labelled[0]))


def test_a_model_of_six_identities_is_better_than_the_pretrained_one():
    train = make_identities(n_identities=6, size=12, dim=32, spread=1.0, seed=0)
    X, y = make_identities(n_identities=100, size=12, dim=32, spread=1.0, seed=1)
    model = HiLander(learning=LEARNING, device="cpu").fit(*train)
    assert 0 < model.network_.settings.own_weight < 0.3
    assert model.score(X, y) > HiLander.pretrained().score(X, y) > 0.8


def test_with_too_few_identities_each_set_is_whitened_by_itself(labelled, tmp_path):
    X, y = labelled
    some = y < 12
    quick = {"hidden": 8, "learning": LEARNING, "p_tau": 0.5, "device": "cpu"}
    model = HiLander(**quick).fit(X[some], y[some])
    assert model.preparation_.whitens_each_set
    assert "own clusters" in model.preparation_.describe()
    assert HiLander.load(model.save(tmp_path / "m")).preparation_.whitens_each_set
    assert not HiLander(**quick, prior="none").fit(X[some], y[some]).preparation_.whitens_each_set
    assert not HiLander(**quick).fit(X, y).preparation_.whitens_each_set


@pytest.mark.usefixtures("more_steps")
def test_a_stretched_space_is_whitened_by_a_model_of_four_identities():
    rng = np.random.default_rng(0)
    stretch = np.where(np.arange(48) < 12, 3.0, 0.3)

    def draw(n):
        y = np.repeat(np.arange(n), 20)
        return rng.normal(size=(n, 48))[y] + rng.normal(size=(len(y), 48)) * stretch, y

    train, (X, y) = draw(4), draw(60)
    model = HiLander(learning=LEARNING, device="cpu").fit(*train)
    pretrained = HiLander.pretrained().score(X, y)
    plain = HiLander.pretrained().set_params(whiten=False).score(X, y)
    assert pretrained > plain + 0.1  # whitening matters for this set
    assert model.score(X, y) > pretrained - 0.05


def test_the_weight_depends_on_the_number_of_identities():
    assert weight_of_trained(2, 10_000) < weight_of_trained(10, 1_000)


@pytest.mark.parametrize("name", ["start", "prior"])
@pytest.mark.parametrize("value", [None, 5, True])
def test_a_value_that_is_no_path_is_refused_by_name(labelled, name, value):
    with pytest.raises(SettingError, match=f"{name}=.*is not a folder; use"):
        make_plan(HiLander(**{name: value}), *labelled)


@pytest.mark.parametrize("name", ["start", "prior"])
def test_a_folder_of_another_kind_is_refused(labelled, tmp_path, name):
    run = claim_folder(tmp_path / "run", "run")
    message = rf"{name}=.*/run is a run folder, expected a model folder; check the path"
    with pytest.raises(SettingError, match=message):
        make_plan(HiLander(**{name: run}), *labelled)
    with pytest.raises(SettingError, match=f"{name}=.*has no hilander.json, expected a model"):
        make_plan(HiLander(**{name: tmp_path}), *labelled)


def test_the_command_has_an_option_for_the_prior_model_and_prints_which_was_used(
    labelled, tmp_path, capsys
):
    np.savez(tmp_path / "train.npz", features=labelled[0], labels=labelled[1])
    command = ["train", f"{tmp_path}/train.npz", "--epochs", "2", "--p-tau", "0.5", "--quiet"]
    assert main([*command, "-o", f"{tmp_path}/alone", "--prior", "none"]) == 0
    assert main([*command, "-o", f"{tmp_path}/both", "--prior", f"{tmp_path}/alone"]) == 0
    assert HiLander.load(tmp_path / "alone").network_.prior is None
    assert HiLander.load(tmp_path / "both").network_.prior is not None
    assert main(["info", f"{tmp_path}/both", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["prior"] == "alone"
    loud = [one for one in command if one != "--quiet"]
    assert main([*loud, "-o", f"{tmp_path}/loud"]) == 0
    assert "averaged with the prior model 'pretrained'" in capsys.readouterr().out
    assert 0 < facts["own_weight"] < 1
    assert (
        main([*command, "-o", f"{tmp_path}/p", "--method", "paper", "--prior", "pretrained"]) == 2
    )
    assert "--method evidence" in capsys.readouterr().err
    assert main(["cluster", f"{tmp_path}/train.npz", "-o", f"{tmp_path}/run", "--quiet"]) == 0
    assert main([*command, "-o", f"{tmp_path}/p", "--prior", f"{tmp_path}/run"]) == 2
    assert "run is a run folder, expected a model folder" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()
