"""The estimator's promises, its manners as a scikit-learn estimator, and its properties."""

import json
from itertools import pairwise

import numpy as np
import pandas
import pyarrow
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilander import Hierarchy, HiLander
from hilander.errors import LabelError, SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.training import LearningSettings
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities

EXPECTED_FAILURES = {
    "check_estimators_dtypes": "rounds uniform features down to all-zero rows; a row of zeros has "
    "no direction, and cosines are all this method sees",
    "check_methods_sample_order_invariance": "compares cluster numbers; another order of the rows "
    "gives the same partition under other numbers (tested below)",
    "check_methods_subset_invariance": "predicts one row at a time; rows are clustered jointly, "
    "and one row alone has no neighbour",
}


def expected_failures(_):
    return EXPECTED_FAILURES


QUICK = LearningSettings(batch_size=512, learning_rate=0.1, hierarchies=((5, 2), (3, 2)))
THOROUGH = LearningSettings(
    batch_size=128, optimizer="adamw", learning_rate=0.01, hierarchies=((10, 2), (5, 2))
)


@pytest.mark.filterwarnings("ignore:X has . features, expected at least 4:UserWarning")
@parametrize_with_checks(
    [
        HiLander(method="paper", k=3, epochs=2, hidden=8, learning=QUICK, device="cpu"),
        # Large enough to give several clusters: of a single one every check of the labels is true.
        HiLander(k=3, epochs=4, hidden=16, learning=EvidenceLearning(most_points=60), device="cpu"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def quick(**changes):
    settings = {
        "method": "paper",
        "k": 5,
        "epochs": 2,
        "hidden": 16,
        "learning": QUICK,
        "device": "cpu",
    }
    return HiLander(**{**settings, **changes})


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


@pytest.fixture(scope="module")
def model():
    """Trained on 40 identities; not to be changed."""
    X, y = make_identities(n_identities=40, size=8, dim=16, spread=0.45, seed=0)
    return quick(k=10, epochs=40, learning=THOROUGH).fit(X, y)


@pytest.fixture(scope="module")
def unseen():
    return make_identities(n_identities=30, size=9, dim=16, spread=0.45, seed=1)


def test_it_learns_to_group_identities_it_has_never_seen(model, unseen):
    X, y = unseen
    labels = model.predict(X)
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))
    # Singletons would score 0.2, one cluster 0.06.
    assert model.score(X, y) == bcubed_f(y, labels) > 0.4


def test_fit_leaves_what_was_promised(model):
    assert isinstance(model.hierarchy_, Hierarchy)
    np.testing.assert_array_equal(model.labels_, model.hierarchy_.labels(-1))
    assert model.n_features_in_ == 16
    assert len(model.history_) == 40
    assert 0 <= model.rules_.p_tau <= 1
    assert model.summary_["n_identities"] == 40
    assert model.summary_["validation"]  # p_tau was chosen on held-out identities


def test_cluster_gives_the_hierarchy_whose_last_level_predict_gives(model, unseen):
    X, _ = unseen
    found = model.cluster(X)
    assert isinstance(found, Hierarchy)
    np.testing.assert_array_equal(found.labels(-1), model.predict(X))
    assert found.density.shape == (len(X),)


def test_fit_predict_is_fit_and_then_its_labels():
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    one = quick(epochs=2)
    np.testing.assert_array_equal(one.fit_predict(X, y), one.labels_)
    np.testing.assert_array_equal(one.predict(X), one.labels_)


def test_clone_copies_the_settings_and_nothing_learnt(model):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(np.eye(16))
    with pytest.raises(NotFittedError):
        copy.save("nowhere")


@pytest.mark.parametrize("call", ["predict", "cluster", "walk", "save"])
def test_an_unfitted_model_names_the_way_without_labels(call, tmp_path):
    given = tmp_path / "model" if call == "save" else np.eye(16)
    with pytest.raises(NotFittedError, match=r"fit\(X, y\).*HiLander\.pretrained\(\)"):
        getattr(HiLander(), call)(given)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("call", ["fit", "fit_predict"])
def test_learning_without_labels_names_the_way_without_labels(call):
    X, _ = make_identities(n_identities=6, size=8, dim=8, seed=0)
    with pytest.raises(LabelError, match=r"y is None.*HiLander\.pretrained\(\)\.cluster\(X\)"):
        getattr(HiLander(), call)(X)


def test_points_of_unknown_identity_are_grouped_but_not_learnt_from():
    X, y = make_identities(n_identities=8, size=8, dim=8, seed=0)
    unknown = np.arange(len(X)) % 5 == 0
    with pytest.warns(UserWarning, match="13 of 64 labels are -1"):
        told = quick(epochs=2).fit(X, np.where(unknown, -1, y))
    taught = quick(epochs=2).fit(X[~unknown], y[~unknown])
    for name, weight in taught.network_.state_dict().items():
        assert torch.equal(weight, told.network_.state_dict()[name])
    assert told.labels_.shape == (64,)
    assert told.hierarchy_.n_points == 64
    np.testing.assert_array_equal(told.labels_, taught.predict(X))


def test_embeddings_of_few_dimensions_are_warned_of():
    X, y = make_identities(n_identities=8, size=8, dim=3, seed=0)
    with pytest.warns(UserWarning, match="X has 3 features.*only the directions of embeddings"):
        narrow = quick(epochs=2).fit(X, y)
    with pytest.warns(UserWarning, match="X has 3 features"):
        narrow.predict(X)
    X, y = make_identities(n_identities=8, size=8, dim=4, seed=0)
    quick(epochs=2).fit(X, y)  # warnings are errors


def test_settings_can_be_numpy_numbers():
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    numbers = {"k": np.int64(3), "epochs": np.int32(2), "hidden": np.int64(16)}
    odd = quick(**numbers, random_state=np.int64(0), p_tau=np.float64(0.5)).fit(X, y)
    plain = quick(k=3, epochs=2, p_tau=0.5).fit(X, y)
    np.testing.assert_array_equal(odd.labels_, plain.labels_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"k": 2.5}, "k=2.5"),
        ({"p_tau": 1.5}, "p_tau=1.5"),
        ({"p_tau": "Auto"}, "p_tau='Auto'"),
        ({"features": "mean"}, "features='mean' is not known"),
        ({"encoder": "attenton"}, "did you mean 'attention'"),
        ({"hidden": 0}, "hidden=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"val_fraction": 2}, "val_fraction=2"),
        ({"centre": "yes"}, "centre='yes'"),
        ({"random_state": None}, "seed=None"),
        ({"device": "abacus"}, "device='abacus'"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(settings, message):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    with pytest.raises(SettingError, match=message):
        quick(**{"epochs": 1, **settings}).fit(X, y)


# Input of every kind.


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.astype(np.float64),
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.concatenate([X, X], axis=1)[:, :16],
        lambda X: X.astype(">f4"),
        lambda X: X.tolist(),
        torch.from_numpy,
        lambda X: torch.from_numpy(X).double().requires_grad_(),
        pandas.DataFrame,
        lambda X: pandas.Series(list(X)),
        lambda X: pyarrow.array(list(X)),
        lambda X: pyarrow.chunked_array([list(X[:5]), list(X[5:])]),
    ],
)
def test_the_same_numbers_in_any_container_give_the_same_clusters(model, unseen, convert):
    X, _ = unseen
    np.testing.assert_array_equal(model.predict(convert(X)), model.predict(X))


def test_a_memory_map_is_read(model, unseen, tmp_path):
    X, _ = unseen
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))


@pytest.mark.parametrize("kind", [np.float16, np.int16])
def test_halves_and_integers_are_read_as_the_numbers_they_are(model, unseen, kind):
    X = (unseen[0] * 100).astype(kind)
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype(np.float32)))


def test_the_length_of_an_embedding_does_not_matter(model, unseen):
    X, _ = unseen
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(len(X), 1))
    assert same_partition(model.predict(X * lengths), model.predict(X))


def test_labels_of_any_kind_teach_the_same():
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    plain = quick(epochs=2).fit(X, y).labels_
    names = np.array(["ann", "bob", "cid", "dot", "eve", "fay"])[y]
    for labels in (names, names.tolist(), pandas.Series(names), y + 1000, torch.from_numpy(y)):
        np.testing.assert_array_equal(quick(epochs=2).fit(X, labels).labels_, plain)


def test_score_takes_strings(model, unseen):
    X, y = unseen
    named = model.score(X, [f"person {label}" for label in y])
    assert named == pytest.approx(model.score(X, y))


def test_a_graph_of_ones_own_takes_the_place_of_the_search(model, unseen):
    X, _ = unseen
    graph = build_knn_graph(model.preparation_.apply(X), 10)
    np.testing.assert_array_equal(model.cluster(X, graph=graph).labels(), model.predict(X))
    wider = build_knn_graph(model.preparation_.apply(X), 7)
    np.testing.assert_array_equal(
        model.cluster(X, graph=wider).labels(), model.cluster(X, k=7).labels()
    )
    other = KnnGraph(np.array([[1], [0]]), np.ones((2, 1)))
    with pytest.raises(SettingError, match=r"graph has 2 nodes, X has 270 rows"):
        model.cluster(X, graph=other)


def test_a_threshold_in_place_of_the_learnt_one(model, unseen):
    X, _ = unseen
    n_clusters = [model.cluster(X, p_tau=tau).n_clusters(0) for tau in (0.0, 0.5, 1.0)]
    assert n_clusters == sorted(n_clusters)
    assert n_clusters[0] < n_clusters[-1]


# Properties.


def test_renumbering_the_input_renumbers_the_output(model, unseen):
    X, _ = unseen
    order = np.random.default_rng(0).permutation(len(X))
    one, two = model.cluster(X), model.cluster(X[order])
    assert one.n_levels == two.n_levels
    for level in range(one.n_levels):
        assert same_partition(one.labels(level)[order], two.labels(level))


def test_levels_only_merge(model, unseen):
    tries = [model.cluster(unseen[0], p_tau=p_tau) for p_tau in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)]
    found = max(tries, key=lambda one: one.n_levels)
    assert found.n_levels > 1
    for lower, upper in pairwise(found.labels(level) for level in range(found.n_levels)):
        assert len(np.unique(np.stack([lower, upper]), axis=1).T) == lower.max() + 1


def test_every_parent_is_at_least_as_dense(model, unseen):
    found = model.cluster(unseen[0])
    for number, level in enumerate(found.levels):
        parent, linkage = found.parents(number)
        assert (level.density[parent] >= level.density).all()
        linked = parent != np.arange(level.n_nodes)
        assert (linkage[linked] >= model.rules_.p_tau).all()


def test_the_same_seed_gives_the_same_result_on_one_thread_and_on_two(unseen):
    X, y = make_identities(n_identities=15, size=8, dim=16, spread=0.45, seed=0)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 1, 2):
            torch.set_num_threads(threads)
            one = quick(epochs=2).fit(X, y)
            weights = [weight.detach().numpy().copy() for weight in one.network_.parameters()]
            found.append((weights, one.rules_, one.cluster(unseen[0])))
    finally:
        torch.set_num_threads(before)
    for weights, rules, hierarchy in found[1:]:
        for a, b in zip(weights, found[0][0], strict=True):
            np.testing.assert_array_equal(a, b)
        assert rules == found[0][1]
        np.testing.assert_array_equal(hierarchy.labels(), found[0][2].labels())


def test_another_seed_gives_another_model():
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    one, two = (quick(epochs=1, random_state=seed).fit(X, y).network_ for seed in (0, 1))
    assert not torch.equal(next(one.parameters()), next(two.parameters()))


def test_exact_duplicates_by_the_thousand_cluster_together(model):
    distinct, _ = make_identities(n_identities=20, size=1, dim=16, seed=2)
    y = np.random.default_rng(0).permutation(np.repeat(np.arange(20), 200))
    labels = model.predict(distinct[y])
    assert len(np.unique(np.stack([labels, y]), axis=1).T) == 20  # no identity is in two clusters


@pytest.mark.parametrize("n_identities", [12, 20])
def test_few_well_separated_identities_with_negative_cosines_are_found(model, n_identities):
    X, y = make_identities(n_identities=n_identities, size=15, dim=16, spread=0.2, seed=3)
    assert bcubed_f(y, model.predict(X)) > 0.7


@pytest.mark.parametrize("features", ["identity", "average", "concat"])
@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_every_network_learns(unseen, features, encoder):
    X, y = make_identities(n_identities=15, size=10, dim=16, spread=0.45, seed=0)
    shape = {"features": features, "encoder": encoder, "layers": 2, "heads": 2}
    model = quick(epochs=10, learning=THOROUGH, **shape).fit(X, y)
    assert model.network_.settings.features == features
    assert model.rules_.search_average == (features == "average")
    assert model.history_[-1]["loss"] < 0.8 * model.history_[0]["loss"]
    assert 0 < model.score(*unseen) <= 1


def test_the_best_features_and_k_are_found_when_asked():
    X, y = make_identities(n_identities=30, size=8, dim=16, spread=0.45, seed=0)
    model = quick(features="auto", tune_k=True, epochs=2).fit(X, y)
    table = model.summary_["validation"]
    assert {row["features"] for row in table} == {"identity", "average", "concat"}
    assert len({row["k"] for row in table}) > 1
    best = max(row["f"] for row in table)
    chosen = {"features": model.network_.settings.features, "k": model.rules_.k}
    assert best in [row["f"] for row in table if chosen.items() <= row.items()]


# Centring.


def in_a_cone(seed):
    X, y = make_identities(n_identities=15, size=10, dim=16, spread=0.45, seed=seed)
    return X + 2 * np.ones(16, dtype=np.float32) / 4, y


def test_centring_is_learnt_in_fit_stored_in_the_model_and_applied_in_predict(tmp_path):
    model = quick().fit(*in_a_cone(0))
    assert model.preparation_.mean is not None
    trained_on = model.cluster(in_a_cone(0)[0])
    np.testing.assert_array_equal(model.hierarchy_.density, trained_on.density)
    np.testing.assert_array_equal(model.labels_, trained_on.labels())
    X, y = in_a_cone(1)
    again = HiLander.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.preparation_.mean, model.preparation_.mean)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # The training mean is taken away, not that of the new points.
    half = X[y < 7]
    graph = build_knn_graph(model.preparation_.apply(half), 5)
    np.testing.assert_array_equal(model.cluster(half, graph=graph).labels(), model.predict(half))
    unit = half / np.linalg.norm(half, axis=1, keepdims=True) - model.preparation_.mean
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    np.testing.assert_allclose(model.preparation_.apply(half), unit, atol=1e-5)


def test_centring_can_be_forced_or_forbidden():
    X, y = in_a_cone(0)
    assert quick(epochs=1, centre=False).fit(X, y).preparation_.mean is None
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    assert quick(epochs=1).fit(X, y).preparation_.mean is None
    assert quick(epochs=1, centre=True).fit(X, y).preparation_.mean is not None


# On disk.


def test_a_loaded_model_predicts_the_same_and_knows_the_same(model, unseen, tmp_path):
    X, _ = unseen
    again = HiLander.load(model.save(tmp_path / "model"))
    one, two = model.cluster(X), again.cluster(X)
    assert one.n_levels == two.n_levels
    for level in range(one.n_levels):
        np.testing.assert_array_equal(one.labels(level), two.labels(level))
    np.testing.assert_array_equal(one.density, two.density)
    assert again.rules_ == model.rules_
    assert again.history_ == model.history_
    assert again.summary_ == model.summary_
    assert again.n_features_in_ == model.n_features_in_
    theirs = {**again.get_params(), "device": None}
    assert theirs == {**model.get_params(), "device": None}


def test_a_model_folder_is_safetensors_and_json(model, tmp_path):
    folder = model.save(tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == [
        "hilander.json", "history.json", "model.json", "weights.safetensors",
    ]  # fmt: skip
    description = json.loads((folder / "model.json").read_text())
    assert description["network"]["dim"] == 16
    assert description["rules"]["p_tau"] == model.rules_.p_tau
    assert description["training"]["n_points"] == 320
    assert len(json.loads((folder / "history.json").read_text())) == 40


def test_a_failed_fit_leaves_the_model_as_it_was(unseen):
    X, y = make_identities(n_identities=6, size=8, dim=16, seed=0)
    model = quick(epochs=1).fit(X, y)
    before = model.predict(unseen[0])
    with pytest.raises(ValueError, match="labels"):
        model.fit(X[:, :4], y[:-1])
    np.testing.assert_array_equal(model.predict(unseen[0]), before)


def test_it_says_what_it_decided_only_when_asked(capsys):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    quick(epochs=1).fit(X, y).predict(X)
    assert capsys.readouterr() == ("", "")
    quick(epochs=1, verbose=True, centre=True).fit(X, y)
    assert capsys.readouterr().out.count("centred on the training mean") == 1


def test_a_fit_that_was_interrupted_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    from hilander.learning import loop

    X, y = make_identities(n_identities=15, size=6, dim=8, seed=0)
    whole = quick(epochs=4).fit(X, y)
    real, calls = loop.train_epoch, []

    def strike(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_epoch", strike)
        with pytest.raises(KeyboardInterrupt):
            quick(epochs=4).fit(X, y, checkpoint=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir())
    resumed = quick(epochs=4).fit(X, y, checkpoint=tmp_path / "kept")
    for a, b in zip(whole.network_.parameters(), resumed.network_.parameters(), strict=True):
        assert torch.equal(a, b)
    assert resumed.history_ == whole.history_
