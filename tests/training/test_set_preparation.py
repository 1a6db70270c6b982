"""Preparation of a set without labels, and whitening within its own clusters."""

import json
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from hilander import HiLander
from hilander.cli.main import main
from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.hierarchy.work import Work
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.face_like import PRESETS, make_face_like
from hilander.synthetic.identities import make_identities
from hilander.training import set_preparation
from hilander.training.inference import plan_run
from hilander.training.methods import find_method
from hilander.training.set_preparation import resolve_preparation


@pytest.fixture(scope="module")
def model():
    return HiLander.pretrained(device="cpu")


def stretched(seed=0, n_identities=40, size=25, dim=48):
    """Identities whose members scatter widely in directions in which identities do not differ."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(n_identities), size))
    centres = rng.normal(size=(n_identities, dim)) / np.sqrt(dim)
    scatter = rng.normal(size=(len(labels), dim)) / np.sqrt(dim)
    scatter[:, : dim // 6] *= 6.0
    return (centres[labels] + 0.5 * scatter).astype(np.float32), labels


def prepare(model, points, **options):
    rules = plan_run(model.model_, points, model.run_settings()).rules
    score = find_method(model.method).make_scorer(model.network_, rules, "cpu")
    return resolve_preparation(model.model_, points, rules, score, whiten=model.whiten, **options)


def with_whiten(whiten):
    return HiLander.pretrained(device="cpu").set_params(whiten=whiten)


def prepare_in_a_run(model, points):
    """The description of the preparation that a run records."""
    work = Work()
    model.walk(points, work=work)
    return work.preparation


def test_a_set_is_whitened_within_its_own_clusters_if_that_helps(model):
    points, labels = stretched()
    chosen = prepare(model, points)
    assert chosen.transform is not None
    assert prepare_in_a_run(model, points) == chosen.describe()
    assert "whitened within its own clusters" in chosen.describe()
    plain = with_whiten(False)
    assert prepare(plain, points).transform is None
    gained = bcubed_f(labels, model.predict(points)) - bcubed_f(labels, plain.predict(points))
    assert gained > 0.1


def test_a_set_that_scatters_alike_in_all_directions_is_left_as_it_is(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.9, seed=1)
    assert prepare(model, points).transform is None
    assert prepare_in_a_run(model, points) == "L2-normalised"


def test_a_cone_is_centred_on_the_mean_of_the_set_itself(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.5, seed=1)
    cone = points + 3 * np.ones(48, dtype=np.float32) / np.sqrt(48)
    assert prepare_in_a_run(model, cone).startswith("L2-normalised, centred on its own mean")


def test_whitening_can_be_forced(model):
    points, _ = make_identities(n_identities=40, size=25, dim=48, spread=0.9, seed=1)
    assert prepare(with_whiten(True), points).transform is not None


def test_a_set_with_a_given_graph_is_whitened_only_if_forced(model):
    points, _ = stretched()
    assert prepare(model, points, own_graph=True).transform is None
    assert prepare(with_whiten(True), points, own_graph=True).transform is not None


def test_embeddings_too_wide_to_whiten_are_left_as_they_are(model, monkeypatch):
    points, _ = stretched()
    monkeypatch.setattr(set_preparation, "MOST_FEATURES", 47)
    assert prepare(model, points).transform is None


def test_a_large_set_is_whitened_by_regions_of_it(model, monkeypatch):
    points, _ = stretched()
    asked = with_whiten(True)  # a sample may be too small to validate it
    whole = prepare(asked, points).transform
    monkeypatch.setattr(set_preparation, "_N_REGIONS", 6)
    monkeypatch.setattr(set_preparation, "_REGION_POINTS", 80)
    once, again = (prepare(asked, points).transform for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, whole)
    agreement = (once * whole).sum() / np.linalg.norm(once) / np.linalg.norm(whole)
    assert agreement > 0.98


@pytest.mark.slow
def test_whether_a_set_is_whitened_does_not_depend_on_the_number_of_points(model):
    # With few large regions, which are denser in a larger set, the larger set alone was whitened.
    chosen = []
    for n_points in (20_000, 200_000):
        scale = n_points / PRESETS["imdb"].n_points
        points, _ = make_face_like("imdb", scale=scale, seed=2)
        chosen.append(prepare(model, points).transform is not None)
    assert chosen == [False, False]
    wide = [stretched(n_identities=n, size=25, dim=96)[0] for n in (400, 1_600)]
    assert [prepare(model, points).transform is not None for points in wide] == [True, True]


def test_a_whitening_does_not_depend_on_the_number_of_threads(model):
    points, _ = stretched(dim=192)
    with threadpool_limits(1):
        alone = prepare(model, points).transform
    with threadpool_limits(2):
        np.testing.assert_array_equal(prepare(model, points).transform, alone)


@pytest.mark.parametrize("n", [12, 16, 40])
def test_sets_too_small_to_learn_from_are_left_as_they_are(model, n):
    points = make_identities(n_identities=n, size=1, dim=8)[0]
    assert prepare(model, points).transform is None
    assert len(model.predict(points)) == n


def test_a_trained_model_keeps_its_preparation():
    trained = HiLander.pretrained(device="cpu")
    points, _ = stretched()
    trained.model_ = replace(trained.model_, preparation=PerSetPreparation(centre=False))
    learned = prepare(trained, points)
    trained.model_ = replace(trained.model_, preparation=learned)
    assert prepare(trained, points) is learned


def test_the_command_has_an_option_for_whitening(tmp_path):
    np.save(tmp_path / "emb.npy", stretched()[0])
    for asked, whitened in (("no", False), ("yes", True)):
        run = tmp_path / asked
        assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(run), "--whiten", asked]) == 0
        described = json.loads((run / "run.json").read_text())
        assert ("whitened" in described["model"]["preparation"]) == whitened


def test_the_option_for_whitening_is_refused_for_a_trained_model(tmp_path, capsys):
    points, _ = stretched()
    trained = HiLander.pretrained(device="cpu")
    trained.model_ = replace(
        trained.model_, preparation=Preparation(None), n_features=points.shape[1]
    )
    trained.save(tmp_path / "model")
    np.save(tmp_path / "emb.npy", points)
    command = ["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]
    assert main([*command, "-m", str(tmp_path / "model"), "--whiten", "yes"]) == 2
    assert "leave it out" in capsys.readouterr().err
    assert main([*command, "-m", str(tmp_path / "model")]) == 0


def test_the_run_records_how_its_embeddings_were_prepared(tmp_path, capsys):
    np.save(tmp_path / "emb.npy", stretched()[0])
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    preparation = described["model"]["preparation"]
    assert "whitened within its own clusters" in preparation
    printed = capsys.readouterr().out
    assert preparation in printed
    assert f"p_tau {HiLander.pretrained().rules_.p_tau:g}" in printed
