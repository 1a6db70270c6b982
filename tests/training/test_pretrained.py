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
def test_the_model_in_the_box_groups_embeddings_of_any_width(dim):
    features, labels = make_identities(n_identities=30, size=20, dim=dim, spread=0.5, seed=dim)
    model = HiLander.pretrained()
    assert isinstance(model.preparation_, PerSetPreparation)
    assert bcubed_f(labels, model.predict(features)) > 0.8


@pytest.mark.parametrize(("n_identities", "size"), [(15, 2), (100, 2), (30, 5), (300, 1)])
def test_the_model_in_the_box_joins_no_strangers_in_a_small_set(n_identities, size):
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
def test_clusters_far_apart_stay_so_though_a_list_of_neighbours_is_longer(
    n_identities, size, spread, dim
):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(n_identities), size)
    features = rng.normal(size=(n_identities, dim))[labels]
    features += spread * rng.normal(size=features.shape)
    assert bcubed_f(labels, HiLander.pretrained().predict(features)) > 0.9


@pytest.mark.parametrize("n_points", range(4, 12))
def test_the_model_in_the_box_groups_a_handful_of_points(n_points):
    features, labels = make_identities(n_identities=6, size=2, dim=32, spread=0.5, seed=5)
    found = HiLander.pretrained().predict(features[:n_points])
    assert bcubed_f(labels[:n_points], found) > 0.6


def test_the_model_that_is_shipped_is_of_the_recipe_of_now():
    from benchmarks.box import FEW_POINTS, POINTS_FOR_EACH, make_plan

    model, plan = HiLander.pretrained(), make_plan(0)
    assert model.network_.settings == replace(plan.network, small_set_points=FEW_POINTS)
    assert model.network_.suited_to(FEW_POINTS) is model.network_.few
    assert model.rules_.points_per_neighbour == POINTS_FOR_EACH
    chosen = {"p_tau": model.rules_.p_tau, "p_tau_merge": model.rules_.p_tau_merge}
    assert model.rules_ == replace(plan.rules, **chosen)


@pytest.mark.parametrize("columns", [list("abcdefgh"), [0, *"bcdefgh"], range(8)])
def test_the_model_in_the_box_takes_a_data_frame_whatever_its_columns_are_called(columns):
    features, _ = make_identities(n_identities=6, size=5, dim=8, seed=4)
    frame = pd.DataFrame(features, columns=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = HiLander.pretrained().predict(frame)
    np.testing.assert_array_equal(found, HiLander.pretrained().predict(features))


def test_a_cone_and_its_centred_embeddings_are_grouped_alike():
    features, labels = make_identities(n_identities=30, size=20, dim=32, spread=0.5, seed=1)
    cone = features + 3 * np.ones(32, dtype=np.float32) / np.sqrt(32)
    assert bcubed_f(labels, HiLander.pretrained().predict(cone)) > 0.8


def test_saving_and_loading_the_model_in_the_box_keeps_it(tmp_path):
    features, _ = make_identities(n_identities=12, size=15, dim=16, seed=2)
    model = HiLander.pretrained()
    again = HiLander.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(model.predict(features), again.predict(features))


def test_the_command_needs_no_model_and_says_which_it_took(tmp_path, capsys):
    features, _ = make_identities(n_identities=12, size=15, dim=16, seed=3)
    np.save(tmp_path / "emb.npy", features)
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    assert "model: pretrained" in capsys.readouterr().out
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["settings"]["model"] == "pretrained"


def test_one_cluster_is_not_called_clusters(tmp_path, capsys):
    np.save(tmp_path / "emb.npy", make_identities(1, 5, dim=16, spread=0.1, seed=0)[0])
    assert main(["cluster", str(tmp_path / "emb.npy"), "-o", str(tmp_path / "run")]) == 0
    assert "5 points in 1 cluster (by level" in capsys.readouterr().out


def test_info_tells_of_the_model_in_the_box(capsys):
    from hilander.training.model_folder import PRETRAINED

    assert main(["info", str(PRETRAINED)]) == 0
    assert "pretrained" in capsys.readouterr().out


def test_the_table_of_the_model_card_is_drawn_from_its_rows():
    from benchmarks.box import CARD, MARKS, ROWS, format_rows
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
