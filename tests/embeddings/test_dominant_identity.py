import numpy as np
import pytest

from hilander import HiLander
from hilander.embeddings.dominant_identity import (
    find_dominant_identity,
    has_no_groups,
    is_single_identity,
)
from hilander.embeddings.preparation import learn_preparation
from hilander.linkage.evidence.background import measure_background, measure_between_cosine
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f

DIM = 48


def make_album(sizes, seed=0, shared=0.0, scatter=0.5):
    """Identities of these sizes in random directions, off the origin by a shared direction."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(size=(len(sizes), DIM)) / np.sqrt(DIM)
    members = centres[labels] + scatter * rng.normal(size=(len(labels), DIM)) / np.sqrt(DIM)
    order = rng.permutation(len(labels))
    towards = shared * np.eye(DIM)[0]
    return (members + towards)[order].astype(np.float32), labels[order]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_an_identity_with_most_of_the_points_is_dominant(shared):
    points, labels = make_album([300] + [1] * 100, shared=shared)
    left = find_dominant_identity(points).background
    assert (labels[left] != 0).mean() > 0.95
    assert len(left) > 85


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize(
    "sizes", [[20] * 30, [1] * 300, [30, 25, 20, *[5] * 40], [200], [300, 300]]
)
def test_balanced_sets_one_cloud_and_two_large_identities_have_no_dominant_identity(sizes, shared):
    assert find_dominant_identity(make_album(sizes, shared=shared)[0]) is None


def test_many_identities_of_one_kind_are_not_a_dominant_identity():
    rng = np.random.default_rng(0)
    similar, _ = make_album([15] * 30, seed=1)
    kind = 2 * unit(rng.normal(size=(1, DIM)))
    others = rng.normal(size=(120, DIM))
    points = np.concatenate([unit(kind + similar), unit(others)])
    # Far more similar than the others, but their nearest neighbours are nearer than in one cloud.
    assert np.mean(points[:450] @ points[:450].T) > 0.7
    assert find_dominant_identity(points) is None
    cloud = unit(kind + rng.normal(size=(450, DIM)) / np.sqrt(DIM))
    dominant = find_dominant_identity(np.concatenate([cloud, unit(others)]))
    assert (dominant.background < len(cloud)).sum() <= 10


def test_a_second_dominant_identity_is_left_out_too():
    points, labels = make_album([900, 250, *[1] * 80], scatter=0.4)
    left = find_dominant_identity(points).background
    assert np.isin(labels[left], [0, 1]).mean() < 0.1


@pytest.mark.parametrize("sizes", [[300, 40], [300, 10], [100, 60]])
def test_of_two_identities_equal_numbers_of_points_are_the_background(sizes):
    points, labels = make_album(sizes, shared=1.0)
    left = np.bincount(labels[find_dominant_identity(points).background])
    np.testing.assert_allclose(left, [sizes[1]] * 2, atol=2)


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize(
    "sizes", [[300, 10], [300, 50], [300, 100], [150, 100], [300, 50, 1, 1, 1]]
)
def test_the_pretrained_model_separates_a_large_identity_from_a_smaller_one(sizes, shared):
    points, labels = make_album(sizes, shared=shared, seed=5)
    assert bcubed_f(labels, HiLander.pretrained().predict(points)) > 0.9


def test_a_dominant_identity_of_many_points_is_found_in_a_sample():
    points, labels = make_album([7000, *[2] * 1000])
    left = find_dominant_identity(points).background
    assert 500 < len(left) < 2000
    assert np.all(np.diff(left) > 0)
    assert (labels[left] != 0).mean() > 0.95


def test_equal_points_and_one_cloud_have_no_groups_and_pairs_are_groups():
    rng = np.random.default_rng(0)
    one = unit(rng.normal(size=(1, DIM)))
    cloud = unit(one + 0.1 * rng.normal(size=(100, DIM)))
    pairs = unit(np.repeat(cloud, 2, axis=0) + 0.02 * rng.normal(size=(200, DIM)))
    line = np.array([[1.0], [2.0], [-1.0]] * 20)
    assert has_no_groups(np.repeat(one, 50, axis=0))
    assert has_no_groups(cloud)
    assert has_no_groups(line)
    assert not has_no_groups(pairs)


def test_a_set_is_a_single_identity_if_it_is_one_cloud_far_above_the_cosine_between_identities():
    rng = np.random.default_rng(0)
    one = unit(rng.normal(size=(1, DIM)))
    cloud = unit(one + 0.1 * rng.normal(size=(100, DIM)))
    pairs = unit(np.repeat(cloud, 2, axis=0) + 0.02 * rng.normal(size=(200, DIM)))
    assert is_single_identity(cloud, cosine=0.7, between_cosine=0.0)
    assert is_single_identity(np.repeat(one, 50, axis=0), cosine=1.0, between_cosine=0.0)
    assert not is_single_identity(cloud, cosine=0.7, between_cosine=0.65)
    assert not is_single_identity(pairs, cosine=0.7, between_cosine=0.0)


def test_the_mean_and_the_background_are_measured_on_the_other_identities():
    points, labels = make_album([400] + [1] * 100, shared=1.5)
    others = unit(points[labels != 0].astype(float))
    preparation = learn_preparation(points)
    assert np.linalg.norm(preparation.mean - others.mean(axis=0)) < 0.05
    assert np.linalg.norm(preparation.mean - unit(points).mean(axis=0)) > 0.2
    assert abs(measure_background(preparation.apply(points)).centre) < 0.05


def test_a_known_between_cosine_is_the_background_of_a_set_with_a_dominant_identity_only():
    balanced, labels = make_album([10] * 40)
    between_cosine = measure_between_cosine(unit(balanced), labels)
    assert abs(between_cosine) < 0.05
    assert measure_between_cosine(unit(balanced)[labels < 7], labels[labels < 7]) is None
    for sizes in ([200], [200, 1, 1], [200] + [1] * 40):
        points = unit(make_album(sizes)[0])
        assert measure_background(points, between_cosine=between_cosine).centre == between_cosine
    for sizes in ([10] * 40, [1] * 200, [2] * 100):
        others = unit(make_album(sizes, seed=3)[0])
        known, unknown = (
            measure_background(others, between_cosine=s) for s in (between_cosine, None)
        )
        assert known == unknown


def test_similar_identities_are_not_taken_for_one_with_a_known_between_cosine():
    similar = unit(make_album([15] * 30, shared=1.5)[0])
    assert measure_background(similar).centre > 0.5
    assert measure_background(similar, between_cosine=0.0) == measure_background(similar)


@pytest.fixture(scope="module")
def fitted():
    points, labels = make_album([15] * 20, seed=7)
    learning = EvidenceLearning(epochs=1, most_points=400)
    return HiLander(learning=learning, whiten=False).fit(points, labels)


@pytest.mark.parametrize("others", [0, 2, 30])
def test_a_fitted_model_finds_one_identity_that_has_nearly_all_points(fitted, others, tmp_path):
    points, labels = make_album([150] + [1] * others, seed=8)
    fitted.save(tmp_path / "model")
    for model in (fitted, HiLander.load(tmp_path / "model")):
        assert bcubed_f(labels, model.predict(points)) > 0.95


def test_a_labelled_dominant_identity_counts_with_the_average_size_of_the_others():
    points, labels = make_album([400] + [2] * 100, shared=1.5)
    others = unit(points[labels != 0].astype(float))
    preparation = learn_preparation(points, labels=labels)
    assert np.linalg.norm(preparation.mean - others.mean(axis=0)) < 0.02
    chosen = find_dominant_identity(points, labels).background
    np.testing.assert_array_equal(np.bincount(labels[chosen]), [2] * 101)
    balanced = np.repeat(np.arange(5), 30)
    assert find_dominant_identity(points[: len(balanced)], balanced) is None
    two = np.repeat([0, 1], [70, 20])
    chosen = find_dominant_identity(points[: len(two)], two).background
    np.testing.assert_array_equal(np.bincount(two[chosen]), [20, 20])


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_the_pretrained_model_finds_one_identity_with_most_of_the_points(shared):
    points, labels = make_album([300] + [2] * 50, shared=shared)
    found = HiLander.pretrained().cluster(points).labels(-1)
    assert bcubed_f(labels, found) > 0.9
