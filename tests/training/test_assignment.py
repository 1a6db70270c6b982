"""Rows that are assigned to the clusters of a hierarchy."""

import numpy as np
import pytest

from hilander.errors import ModelError
from hilander.estimator import HiLander
from hilander.hierarchy import nearest
from hilander.hierarchy.basis import Basis
from hilander.hierarchy.nearest import SetSearch
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=40, size=14, dim=24, spread=0.5, seed=3)


@pytest.fixture(scope="module")
def model():
    return HiLander.pretrained(device="cpu")


@pytest.fixture(scope="module")
def hierarchy(model, labelled):
    return model.cluster(labelled[0][:500])


def test_rows_go_to_the_clusters_of_their_identities(model, hierarchy, labelled):
    X, y = labelled
    found = model.assign(X[500:], hierarchy, top=3)
    assert found.clusters.shape == found.probability.shape == (60, 3)
    assert found.new.shape == (60,)
    labels = hierarchy.labels()
    identity = np.array(
        [np.bincount(y[:500][labels == one]).argmax() for one in range(labels.max() + 1)]
    )
    assert (identity[found.clusters[:, 0]] == y[500:]).mean() > 0.9
    assert found.probability[:, 0].mean() > 0.7


def test_a_row_does_not_depend_on_the_others(model, hierarchy, labelled):
    X = labelled[0][500:505]
    together = model.assign(X, hierarchy)
    alone = model.assign(X[2:3], hierarchy)
    np.testing.assert_array_equal(alone.clusters[0], together.clusters[2])
    np.testing.assert_allclose(alone.probability[0], together.probability[2], atol=1e-5)


def test_a_row_unlike_all_others_is_more_probably_new(model, hierarchy, labelled):
    strange = np.random.default_rng(0).normal(size=(20, 24)).astype(np.float32)
    usual = model.assign(labelled[0][500:520], hierarchy).new.mean()
    assert model.assign(strange, hierarchy).new.mean() > 3 * usual


def test_nothing_is_changed_by_an_assignment(model, hierarchy, labelled):
    before = [getattr(hierarchy.basis, one).copy() for one in ("neighbours", "linkage")]
    model.assign(labelled[0][500:], hierarchy)
    for array, name in zip(before, ("neighbours", "linkage"), strict=True):
        np.testing.assert_array_equal(array, getattr(hierarchy.basis, name))


def test_a_large_set_is_searched_by_its_clusters(hierarchy, labelled, monkeypatch):
    basis = hierarchy.basis
    rows = basis.base.preparation.apply(labelled[0][500:530])
    exact = SetSearch(hierarchy)
    monkeypatch.setattr(nearest, "_EXACT_UP_TO", 100)
    monkeypatch.setattr(nearest, "_CANDIDATES", 120)
    by_clusters = SetSearch(hierarchy)
    found = [
        np.isin(exact.find(row).neighbours, by_clusters.find(row).neighbours).mean() for row in rows
    ]
    assert np.mean(found) > 0.8
    assert isinstance(basis, Basis)


def test_a_hierarchy_of_another_method_is_refused(hierarchy, labelled):
    from hilander.linkage.paper.training import LearningSettings

    paper = HiLander(
        method="paper", k=4, hidden=8, learning=LearningSettings(epochs=1, hierarchies=((3, 2),))
    ).fit(labelled[0][:100], labelled[1][:100])
    other = paper.cluster(labelled[0][:100])
    with pytest.raises(ModelError, match="of another method"):
        HiLander.pretrained().assign(labelled[0][:1], other)
    assert paper.assign(labelled[0][:1], other).clusters.shape == (1, 5)
