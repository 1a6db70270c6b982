"""Points inserted into a set and removed from it."""

from dataclasses import replace

import numpy as np
import pytest

from hilander.collection.revision import revise
from hilander.estimator import HiLander
from hilander.hierarchy.decoding.contraction import number_by_appearance
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.assignment import freeze_scorer

N_OLD = 420


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=40, size=14, dim=24, spread=0.5, seed=3)


@pytest.fixture(scope="module")
def model():
    return HiLander.pretrained(device="cpu")


@pytest.fixture(scope="module")
def hierarchy(model, labelled):
    return model.cluster(labelled[0][:N_OLD])


@pytest.fixture(scope="module")
def update(model, hierarchy):
    basis = hierarchy.basis
    score = freeze_scorer(model.model_, basis.base, "evidence", "cpu")

    def update(kept, X):
        return revise(hierarchy, kept, basis.base.preparation.apply(X), score)

    return update


def everything(n_points=N_OLD):
    return np.ones(n_points, dtype=bool)


def test_inserted_points_are_clustered_as_in_one_run(update, model, labelled):
    X, y = labelled
    labels = Hierarchy(update(everything(), X[N_OLD:]).levels).labels()
    whole = model.cluster(X).labels()
    assert bcubed_f(y, labels) >= bcubed_f(y, whole) - 0.01


def test_what_is_not_touched_keeps_its_bits(update, hierarchy, labelled):
    revision = update(everything(), labelled[0][N_OLD : N_OLD + 3])
    outside = ~revision.in_region[:N_OLD]
    assert 0.5 < outside.mean() < 1
    found = Hierarchy(revision.levels)
    old, new = hierarchy.labels()[outside], found.labels()[:N_OLD][outside]
    assert len(np.unique(np.column_stack([old, new]), axis=0)) == len(np.unique(old))
    assert found.confidence[:N_OLD][outside].tobytes() == hierarchy.confidence[outside].tobytes()
    quiet = np.setdiff1d(np.arange(N_OLD), revision.rescored)
    for name in ("neighbours", "affinity", "linkage"):
        before, after = getattr(hierarchy.basis, name), getattr(revision.lists, name)
        assert after[quiet].tobytes() == before[quiet].tobytes()


def test_the_threshold_of_merges_is_chosen_anew_where_most_points_are_decoded_again(
    model, hierarchy, labelled
):
    X, y = labelled
    basis = hierarchy.basis
    base = replace(basis.base, p_tau_merge=0.9999)
    frozen = Hierarchy(hierarchy.levels, read_basis=lambda: replace(basis, base=base))
    score = freeze_scorer(model.model_, base, "evidence", "cpu")
    prepared = base.preparation.apply(X[N_OLD:])
    few, many = (revise(frozen, everything(), prepared[:n], score) for n in (3, len(prepared)))
    assert few.in_region.mean() < 0.5 < many.in_region.mean()
    assert few.base.p_tau_merge == 0.9999
    assert many.base.p_tau_merge < 0.96
    whole = model.cluster(X).labels()
    assert bcubed_f(y, Hierarchy(many.levels).labels()) >= bcubed_f(y, whole) - 0.01


def test_an_update_without_points_changes_nothing(update, hierarchy, labelled):
    revision = update(everything(), labelled[0][:0])
    assert not revision.in_region.any()
    assert len(revision.rescored) == 0
    labels = Hierarchy(revision.levels).labels()
    before = hierarchy.labels()
    np.testing.assert_array_equal(number_by_appearance(labels), number_by_appearance(before))


def test_only_clusters_that_a_removed_point_was_in_are_decoded_again(update, hierarchy):
    kept = everything()
    kept[[0, 1]] = False
    revision = update(kept, np.empty((0, 24), dtype=np.float32))
    assert len(revision.features) == N_OLD - 2
    assert revision.lists.neighbours.max() < N_OLD - 2
    gone = np.unique(hierarchy.labels()[~kept])
    assert np.isin(gone, revision.former[revision.in_region]).any() or len(gone) == 2
    labels = hierarchy.labels()[kept]
    outside = ~revision.in_region
    assert not np.isin(labels[outside], gone).any()


def test_removing_what_was_inserted_gives_the_partition_back(update, model, hierarchy, labelled):
    X = labelled[0]
    revision = update(everything(), X[N_OLD : N_OLD + 10])
    basis = hierarchy.basis
    lists = revision.lists
    grown = Hierarchy(
        revision.levels,
        None,
        lambda: replace(
            basis,
            features=revision.features,
            neighbours=lists.neighbours,
            affinity=lists.affinity,
            linkage=lists.linkage,
        ),
    )
    score = freeze_scorer(model.model_, basis.base, "evidence", "cpu")
    kept = np.arange(N_OLD + 10) < N_OLD
    back = revise(grown, kept, np.empty((0, 24), dtype=np.float32), score)
    np.testing.assert_array_equal(back.lists.neighbours, basis.neighbours)
    assert bcubed_f(hierarchy.labels(), Hierarchy(back.levels).labels()) > 0.99
