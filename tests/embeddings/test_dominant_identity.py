import numpy as np
import pytest

from hilander import HiLander
from hilander.embeddings.dominant_identity import (
    exclude_dominant_identity,
    find_dominant_identity,
    is_all_one_cloud,
    is_one_cloud,
    split_in_two,
    subsample_dominant_identity,
)
from hilander.embeddings.preparation import learn_preparation
from hilander.linkage.evidence.background import measure_background, measure_between_cosine
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
def test_an_identity_with_most_of_the_points_is_a_crowd(shared):
    points, labels = make_album([300] + [1] * 100, shared=shared)
    left = exclude_dominant_identity(points)
    assert (labels[left] != 0).mean() > 0.95
    assert len(left) > 85


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize(
    "sizes", [[20] * 30, [1] * 300, [30, 25, 20, *[5] * 40], [200], [300, 300]]
)
def test_usual_sets_one_cloud_and_two_large_identities_have_no_crowd(sizes, shared):
    assert exclude_dominant_identity(make_album(sizes, shared=shared)[0]) is None


def test_many_identities_of_one_kind_are_no_crowd():
    rng = np.random.default_rng(0)
    alike, _ = make_album([15] * 30, seed=1)
    kind = 2 * unit(rng.normal(size=(1, DIM)))
    others = rng.normal(size=(120, DIM))
    points = np.concatenate([unit(kind + alike), unit(others)])
    # More alike than the others by far, but nearer to some of themselves than a cloud would be.
    assert np.mean(points[:450] @ points[:450].T) > 0.7
    assert find_dominant_identity(points) is None
    cloud = unit(kind + rng.normal(size=(450, DIM)) / np.sqrt(DIM))
    assert find_dominant_identity(np.concatenate([cloud, unit(others)])).sum() >= 440


def test_a_second_crowd_behind_the_first_is_left_out_too():
    points, labels = make_album([900, 250, *[1] * 80], scatter=0.4)
    left = exclude_dominant_identity(points)
    assert np.isin(labels[left], [0, 1]).mean() < 0.1


@pytest.mark.parametrize("sizes", [[300, 40], [300, 10], [100, 60]])
def test_two_identities_alone_are_each_others_background(sizes):
    points, labels = make_album(sizes, shared=1.0)
    left = np.bincount(labels[exclude_dominant_identity(points)])
    np.testing.assert_allclose(left, [sizes[1]] * 2, atol=2)


@pytest.mark.parametrize("shared", [0.0, 2.0])
@pytest.mark.parametrize(
    "sizes", [[300, 10], [300, 50], [300, 100], [150, 100], [300, 50, 1, 1, 1]]
)
def test_the_box_tells_a_large_identity_from_a_smaller_one(sizes, shared):
    points, labels = make_album(sizes, shared=shared, seed=5)
    assert bcubed_f(labels, HiLander.pretrained().predict(points)) > 0.9


def test_a_crowd_is_found_in_a_sample_of_many_points():
    points, labels = make_album([7000, *[2] * 1000])
    left = exclude_dominant_identity(points)
    assert 500 < len(left) < 2000
    assert np.all(np.diff(left) > 0)
    assert (labels[left] != 0).mean() > 0.95


def test_equal_points_are_one_cloud_and_pairs_are_not():
    rng = np.random.default_rng(0)
    one = unit(rng.normal(size=(1, DIM)))
    assert is_one_cloud(np.repeat(one, 50, axis=0))
    spread = unit(one + 0.1 * rng.normal(size=(100, DIM)))
    assert is_one_cloud(spread)
    pairs = unit(np.repeat(spread, 2, axis=0) + 0.02 * rng.normal(size=(200, DIM)))
    assert not is_one_cloud(pairs)
    assert is_all_one_cloud(spread)
    assert is_all_one_cloud(np.array([[1.0], [2.0], [-1.0]] * 20))
    assert not is_all_one_cloud(pairs)


def test_values_are_split_where_the_two_groups_differ_most():
    values = np.array([0.0, 0.1, 0.2, 5.0, 5.1])
    assert 0.2 < split_in_two(np.random.default_rng(0).permutation(values)) < 5.0


def test_the_mean_and_the_background_are_those_of_the_others():
    points, labels = make_album([400] + [1] * 100, shared=1.5)
    others = unit(points[labels != 0].astype(float))
    preparation = learn_preparation(points)
    assert np.linalg.norm(preparation.mean - others.mean(axis=0)) < 0.05
    assert np.linalg.norm(preparation.mean - unit(points).mean(axis=0)) > 0.2
    assert abs(measure_background(preparation.apply(points)).centre) < 0.05


def test_who_knows_strangers_measures_a_crowd_against_them_and_others_as_ever():
    usual, labels = make_album([10] * 40)
    between_cosine = measure_between_cosine(unit(usual), labels)
    assert abs(between_cosine) < 0.05
    assert measure_between_cosine(unit(usual)[labels < 7], labels[labels < 7]) is None
    for sizes in ([200], [200, 1, 1], [200] + [1] * 40):
        crowd = unit(make_album(sizes)[0])
        assert measure_background(crowd, between_cosine=between_cosine).centre == between_cosine
    for sizes in ([10] * 40, [1] * 200, [2] * 100):
        others = unit(make_album(sizes, seed=3)[0])
        known, unknown = (
            measure_background(others, between_cosine=s) for s in (between_cosine, None)
        )
        assert known == unknown


def test_identities_of_one_kind_are_not_taken_for_one_by_who_knows_strangers():
    alike = unit(make_album([15] * 30, shared=1.5)[0])
    assert measure_background(alike).centre > 0.5
    assert measure_background(alike, between_cosine=0.0) == measure_background(alike)


@pytest.fixture(scope="module")
def fitted():
    points, labels = make_album([15] * 40, seed=7)
    return HiLander(epochs=8).fit(points, labels)


@pytest.mark.parametrize("others", [0, 2, 30])
def test_a_fitted_model_finds_one_identity_that_is_nearly_all_there_is(fitted, others, tmp_path):
    points, labels = make_album([150] + [1] * others, seed=8)
    fitted.save(tmp_path / "model")
    for model in (fitted, HiLander.load(tmp_path / "model")):
        assert bcubed_f(labels, model.predict(points)) > 0.95


def test_of_a_labelled_crowd_as_few_count_as_others_have():
    points, labels = make_album([400] + [2] * 100, shared=1.5)
    others = unit(points[labels != 0].astype(float))
    preparation = learn_preparation(points, labels=labels)
    assert np.linalg.norm(preparation.mean - others.mean(axis=0)) < 0.02
    chosen = subsample_dominant_identity(labels)
    np.testing.assert_array_equal(np.bincount(labels[chosen]), [2] * 101)
    assert subsample_dominant_identity(np.repeat(np.arange(5), 30)) is None
    two = np.repeat([0, 1], [70, 20])
    np.testing.assert_array_equal(np.bincount(two[subsample_dominant_identity(two)]), [20, 20])


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_the_box_finds_the_one_person_who_is_on_most_photos(shared):
    points, labels = make_album([300] + [2] * 50, shared=shared)
    found = HiLander.pretrained().cluster(points).labels(-1)
    assert bcubed_f(labels, found) > 0.9
