"""Preparing a set without labels, and whitening it within its own clusters."""

import json

import numpy as np
import pytest
from hilander.training.plans import rules_for

from hilander import HiLander
from hilander.cli.main import main
from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.hierarchy.work import Work
from hilander.knn.search import build_knn_graph
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.paper.recipe import set_preparation as own_preparation
from hilander.training.set_preparation import resolve_preparation


@pytest.fixture(scope="module")
def model():
    return HiLander.pretrained(device="cpu")


def stretched(seed=0, n_identities=40, size=25, dim=48):
    """Identities whose members scatter widely in directions that tell nothing of identities."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_identities), size))
    centres = rng.normal(size=(n_identities, dim)) / np.sqrt(dim)
    scatter = rng.normal(size=(len(labels), dim)) / np.sqrt(dim)
    scatter[:, : dim // 6] *= 6.0
    return (centres[labels] + 0.5 * scatter).astype(np.float32), labels


def prepare(model, points, **how):
    return resolve_preparation(model, points, rules_for(model, len(points)), **how)


def whiten_as(model, whiten):
    asked = HiLander.pretrained(device="cpu")
    return asked.set_params(whiten=whiten)


def test_a_set_is_whitened_within_its_own_clusters_where_that_helps(model):
    points, labels = stretched()
    work = Work()
    chosen = prepare(model, points, work=work)
    assert chosen.transform is not None
    assert (
        work.preparation == chosen.describe() == "L2-normalised, whitened within its own clusters"
    )
    plain = whiten_as(model, False)
    assert prepare(plain, points).transform is None
    gained = bcubed_f(labels, model.predict(points)) - bcubed_f(labels, plain.predict(points))
    assert gained > 0.1


def test_a_set_that_scatters_alike_in_all_directions_is_left_as_it_is(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.9, seed=1)
    work = Work()
    assert prepare(model, points, work=work).transform is None
    assert work.preparation == "L2-normalised"


def test_a_cone_is_centred_on_the_mean_of_the_set_itself(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.5, seed=1)
    work = Work()
    prepare(model, points + 3 * np.ones(48, dtype=np.float32) / np.sqrt(48), work=work)
    assert work.preparation.startswith("L2-normalised, centred on its own mean (length")


def test_who_asks_for_whitening_gets_it_whatever_it_gains(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.9, seed=1)
    assert prepare(whiten_as(model, True), points).transform is not None


def test_a_graph_of_ones_own_is_not_belied(model):
    points, _ = stretched()
    graph = build_knn_graph(points, 15)
    assert prepare(model, points, graph=graph).transform is None
    assert prepare(whiten_as(model, True), points, graph=graph).transform is not None


def test_embeddings_too_wide_to_whiten_are_left_as_they_are(model, monkeypatch):
    points, _ = stretched()
    monkeypatch.setattr(own_preparation, "MOST_FEATURES", 47)
    assert prepare(model, points).transform is None


def test_a_large_set_learns_from_regions_of_it(model, monkeypatch):
    points, _ = stretched()
    asked = whiten_as(model, True)  # a sample may be too small to speak for it
    whole = prepare(asked, points).transform
    monkeypatch.setattr(own_preparation, "_REGIONS", 6)
    monkeypatch.setattr(own_preparation, "_REGION_POINTS", 80)
    once, again = (prepare(asked, points).transform for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, whole)
    agreement = (once * whole).sum() / np.linalg.norm(once) / np.linalg.norm(whole)
    assert agreement > 0.98


@pytest.mark.parametrize("n", [12, 16, 40])
def test_sets_too_small_to_learn_from_are_left_as_they_are(model, n):
    points = make_identities(n_identities=n, size=1, dim=8)[0]
    assert prepare(model, points).transform is None
    assert len(model.predict(points)) == n


def test_a_trained_model_prepares_as_it_learnt(model):
    trained = HiLander.pretrained(device="cpu")
    points, _ = stretched()
    trained.preparation_ = PerSetPreparation(centre=False)
    learnt = prepare(trained, points)
    trained.preparation_ = learnt
    assert prepare(trained, points) is learnt


def test_the_command_whitens_as_it_is_told(tmp_path):
    np.save(tmp_path / "emb.npy", stretched()[0])
    for asked, whitened in (("no", False), ("yes", True)):
        run = tmp_path / asked
        assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(run), "--whiten", asked]) == 0
        described = json.loads((run / "run.json").read_text())
        assert ("whitened" in described["model"]["preparation"]) == whitened


def test_a_model_that_learnt_to_prepare_is_not_told_to_whiten(tmp_path, capsys):
    points, _ = stretched()
    trained = HiLander.pretrained(device="cpu")
    trained.preparation_, trained.n_features_in_ = Preparation(None), points.shape[1]
    trained.save(tmp_path / "model")
    np.save(tmp_path / "emb.npy", points)
    command = ["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]
    assert main([*command, "-m", str(tmp_path / "model"), "--whiten", "yes"]) == 2
    assert "prepares embeddings as it learnt to; leave it out" in capsys.readouterr().err
    assert main([*command, "-m", str(tmp_path / "model")]) == 0


def test_the_run_says_how_its_embeddings_were_prepared(tmp_path, capsys):
    np.save(tmp_path / "emb.npy", stretched()[0])
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    said = "L2-normalised, whitened within its own clusters"
    p_tau = HiLander.pretrained().rules_.p_tau
    assert f"model: pretrained, p_tau {p_tau:g}, embeddings {said}; run:" in capsys.readouterr().out
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["model"]["preparation"] == said
