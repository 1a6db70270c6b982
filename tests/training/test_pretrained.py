"""The pretrained model: what it clusters well, its recipe, and its command."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hilander import HiLander
from hilander.cli.main import main
from hilander.embeddings.preparation import PerSetPreparation
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities


@pytest.mark.parametrize("dim", [8, 48])
def test_embeddings_of_any_width_are_clustered(dim):
    features, labels = make_identities(n_identities=30, size=20, dim=dim, spread=0.5, seed=dim)
    model = HiLander.pretrained()
    assert isinstance(model.preparation_, PerSetPreparation)
    assert bcubed_f(labels, model.predict(features)) > 0.75


@pytest.mark.parametrize(("n_identities", "size"), [(15, 2), (100, 2), (30, 5), (300, 1)])
def test_two_identities_are_not_merged_in_a_small_set(n_identities, size):
    features, labels = make_identities(n_identities, size, dim=32, spread=0.5, seed=5)
    assert bcubed_f(labels, HiLander.pretrained().predict(features)) > 0.8


@pytest.mark.parametrize(
    ("n_identities", "size", "spread", "dim"),
    [
        (500, 4, 0.3, 256),
        (500, 10, 0.5, 128),
        (300, 10, 0.9, 512),
        (90, 10, 0.9, 512),
        (60, 10, 0.7, 128),
    ],
)
def test_well_separated_clusters_smaller_than_k_are_not_merged(n_identities, size, spread, dim):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_identities), size)
    features = rng.normal(size=(n_identities, dim))[labels]
    features += spread * rng.normal(size=features.shape)
    assert bcubed_f(labels, HiLander.pretrained().predict(features)) > 0.9


@pytest.mark.parametrize("n_points", range(4, 12))
def test_four_to_eleven_points_are_clustered(n_points):
    features, labels = make_identities(n_identities=6, size=2, dim=32, spread=0.5, seed=5)
    found = HiLander.pretrained().predict(features[:n_points])
    assert bcubed_f(labels[:n_points], found) > 0.6


def test_the_shipped_model_is_of_the_present_recipe():
    from benchmarks.pretrained import POINTS_PER_NEIGHBOUR, SMALL_SET_POINTS, make_plan

    model, plan = HiLander.pretrained(), make_plan(0)
    assert model.network_.settings == replace(plan.network, small_set_points=SMALL_SET_POINTS)
    assert model.network_.for_size(SMALL_SET_POINTS) is model.network_.small_set
    assert model.rules_.points_per_neighbour == POINTS_PER_NEIGHBOUR
    chosen = {"p_tau": model.rules_.p_tau, "p_tau_merge": model.rules_.p_tau_merge}
    assert model.rules_ == replace(plan.rules, **chosen)


@pytest.mark.parametrize("columns", [list("abcdefgh"), [0, *"bcdefgh"], range(8)])
def test_a_data_frame_is_read_whatever_its_column_names(columns):
    features, _ = make_identities(n_identities=6, size=5, dim=8, seed=4)
    frame = pd.DataFrame(features, columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = HiLander.pretrained().predict(frame)
    np.testing.assert_array_equal(found, HiLander.pretrained().predict(features))


def test_embeddings_in_a_narrow_cone_are_clustered():
    features, labels = make_identities(n_identities=30, size=20, dim=32, spread=0.5, seed=1)
    cone = features + 3 * np.ones(32, dtype=np.float32) / np.sqrt(32)
    assert bcubed_f(labels, HiLander.pretrained().predict(cone)) > 0.8


def test_saving_and_loading_keeps_the_model(tmp_path):
    features, _ = make_identities(n_identities=12, size=15, dim=16, seed=2)
    model = HiLander.pretrained()
    again = HiLander.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict(features), again.predict(features))


def test_the_command_needs_no_model_and_records_which_it_used(tmp_path, capsys):
    features, _ = make_identities(n_identities=12, size=15, dim=16, seed=3)
    np.save(tmp_path / "emb.npy", features)
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    assert "model: pretrained" in capsys.readouterr().out
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["settings"]["model"] == "pretrained"


def test_one_cluster_is_printed_in_the_singular(tmp_path, capsys):
    np.save(tmp_path / "emb.npy", make_identities(1, 5, dim=16, spread=0.1, seed=0)[0])
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    assert "5 points in 1 cluster (by level" in capsys.readouterr().out


def test_info_describes_the_pretrained_model(capsys):
    from hilander.linkage.storage import PRETRAINED

    assert main(["info", str(PRETRAINED)]) == 0
    assert "pretrained" in capsys.readouterr().out


def test_the_table_of_the_model_card_is_rendered_from_its_rows():
    from benchmarks.pretrained import CARD, MARKS, ROWS, format_rows
    from benchmarks.rows import put_block, read_rows

    text = CARD.read_text(encoding="utf-8")
    assert MARKS[0] in text
    assert text == put_block(text, MARKS, format_rows(read_rows(ROWS)))


@pytest.mark.parametrize(
    ("n_identities", "size", "spread", "dim"),
    [(2, 350, 0.7, 256), (2, 500, 0.5, 64), (3, 900, 0.7, 256), (4, 700, 0.5, 64)],
)
def test_a_few_large_clusters_stay_whole(n_identities, size, spread, dim):
    rng = np.random.default_rng(7)
    labels = np.repeat(np.arange(n_identities), size)
    centres = rng.normal(size=(n_identities, dim))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    scatter = spread * rng.normal(size=(len(labels), dim)) / np.sqrt(dim)
    found = HiLander.pretrained().predict(centres[labels] + scatter)
    assert bcubed_f(labels, found) > 0.95
