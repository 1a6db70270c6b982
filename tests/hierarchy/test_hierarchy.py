import numpy as np
import pytest

from hilander.errors import LevelError, SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level


def level(parent, linkage, **changes):
    """A level from its parents; every node's density is its number of children."""
    parent = np.asarray(parent)
    peaks = np.flatnonzero(parent == np.arange(len(parent)))
    roots = parent.copy()
    for _ in parent:
        roots = parent[roots]
    fields = {
        "parent": parent,
        "linkage": np.asarray(linkage, dtype=np.float32),
        "density": np.bincount(parent, minlength=len(parent)).astype(np.float32),
        "labels": np.searchsorted(peaks, roots),
        "peaks": peaks,
    }
    return Level(**{**fields, **changes})


NAN = float("nan")


@pytest.fixture
def by_hand():
    """Six points, to three clusters, to two."""
    first = level([1, 1, 1, 3, 3, 5], [0.9, NAN, 0.8, NAN, 0.7, NAN])
    second = level([0, 0, 2], [NAN, 0.6, NAN], stops_early=True)
    return Hierarchy([first, second])


def test_everything_about_a_hierarchy_by_hand(by_hand):
    assert by_hand.n_levels == 2
    assert by_hand.n_points == 6
    assert by_hand.labels(0).tolist() == [0, 0, 0, 1, 1, 2]
    assert by_hand.labels(1).tolist() == [0, 0, 0, 0, 0, 1]
    assert by_hand.labels().tolist() == by_hand.labels(-1).tolist() == [0, 0, 0, 0, 0, 1]
    assert by_hand.n_clusters(0) == 3
    assert by_hand.n_clusters() == 2
    assert by_hand.sizes(0).tolist() == [3, 2, 1]
    assert by_hand.sizes().tolist() == [5, 1]
    assert by_hand.peaks(0).tolist() == [1, 3, 5]
    assert by_hand.peaks().tolist() == [1, 5]
    assert by_hand.merges(0).tolist() == [0, 0, 1]
    assert by_hand.parents(0)[0].tolist() == [1, 1, 1, 3, 3, 5]
    np.testing.assert_allclose(by_hand.parents(1)[1], [NAN, 0.6, NAN])
    # Point 3 tops a first-level cluster, so the link of that cluster attached it.
    np.testing.assert_allclose(by_hand.confidence, [0.9, 1, 0.8, 0.6, 0.7, 1])
    assert by_hand.is_peak.tolist() == [False, True, False, False, False, True]
    assert by_hand.density.tolist() == [0, 3, 0, 2, 0, 1]
    assert by_hand.early_stop_level == 1
    assert repr(by_hand) == "Hierarchy(6 points -> 3 -> 2 clusters)"


def test_levels_only_merge(hierarchy):
    for number in range(hierarchy.n_levels - 1):
        lower, upper = hierarchy.labels(number), hierarchy.labels(number + 1)
        np.testing.assert_array_equal(hierarchy.merges(number)[lower], upper)
        assert hierarchy.n_clusters(number + 1) < hierarchy.n_clusters(number)


def test_labels_are_ints_from_zero_without_gaps(hierarchy):
    for number in range(hierarchy.n_levels):
        labels = hierarchy.labels(number)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(np.unique(labels), np.arange(hierarchy.n_clusters(number)))
        np.testing.assert_array_equal(np.bincount(labels), hierarchy.sizes(number))
        assert hierarchy.sizes(number).sum() == hierarchy.n_points


def test_a_peak_lies_in_its_own_cluster_at_every_level(hierarchy):
    for number in range(hierarchy.n_levels):
        peaks = hierarchy.peaks(number)
        np.testing.assert_array_equal(hierarchy.labels(number)[peaks], np.arange(len(peaks)))


def test_a_node_is_in_the_cluster_of_its_parent_which_is_at_least_as_dense(hierarchy):
    for number, one in enumerate(hierarchy.levels):
        parent, linkage = hierarchy.parents(number)
        np.testing.assert_array_equal(one.labels[parent], one.labels)
        assert (one.density[parent] >= one.density).all()
        np.testing.assert_array_equal(np.isnan(linkage), parent == np.arange(one.n_nodes))


def test_confidence_is_a_probability_for_every_point(hierarchy):
    assert hierarchy.confidence.shape == (hierarchy.n_points,)
    assert hierarchy.confidence.min() >= 0.3  # the threshold that made it
    assert hierarchy.confidence.max() <= 1
    assert (hierarchy.confidence[hierarchy.is_peak] == 1).all()
    assert hierarchy.is_peak.sum() == hierarchy.n_clusters()


def test_labels_may_be_changed_without_changing_the_hierarchy(hierarchy):
    before = hierarchy.labels(0)
    hierarchy.labels(0)[:] = 0
    np.testing.assert_array_equal(hierarchy.labels(0), before)


def test_negative_levels_count_from_the_end(hierarchy):
    for number in range(hierarchy.n_levels):
        np.testing.assert_array_equal(
            hierarchy.labels(number), hierarchy.labels(number - hierarchy.n_levels)
        )


@pytest.mark.parametrize("ask", ["labels", "n_clusters", "sizes", "peaks", "parents", "merges"])
@pytest.mark.parametrize("number", [2, -3, 100])
def test_a_level_that_is_not_there_is_named(by_hand, ask, number):
    with pytest.raises(LevelError, match=rf"level {number} does not exist; .* 2 levels, 0 to 1"):
        getattr(by_hand, ask)(number)


@pytest.mark.parametrize("ask", ["labels", "n_clusters", "sizes", "peaks", "parents", "merges"])
@pytest.mark.parametrize(("level", "kind"), [("a", "str"), (0.0, "float"), (None, "NoneType")])
def test_a_level_that_is_no_number_is_refused_and_the_levels_are_named(by_hand, ask, level, kind):
    said = rf"level {level!r} is a {kind}, expected a whole number; .* 2 levels, 0 to 1"
    with pytest.raises(LevelError, match=said):
        getattr(by_hand, ask)(level)


def test_levels_may_be_numpy_numbers(by_hand):
    np.testing.assert_array_equal(by_hand.labels(np.int64(-1)), by_hand.labels(1))
    np.testing.assert_array_equal(by_hand.cut(n_clusters=np.int32(3)), by_hand.labels(0))


def test_nothing_follows_the_last_level(by_hand):
    with pytest.raises(LevelError, match="level 1 is the last of 2"):
        by_hand.merges(-1)


def test_cut_by_level_is_that_level(by_hand):
    np.testing.assert_array_equal(by_hand.cut(level=0), by_hand.labels(0))
    with pytest.raises(LevelError):
        by_hand.cut(level=5)


@pytest.mark.parametrize("wanted", [2, 3])
def test_without_a_graph_a_cut_by_number_is_the_level_of_that_number(by_hand, wanted):
    assert len(np.unique(by_hand.cut(n_clusters=wanted))) == wanted
    with pytest.raises(SettingError, match="made without its graph"):
        by_hand.cut(n_clusters=5)


def test_cut_takes_only_one_way_to_cut(by_hand):
    np.testing.assert_array_equal(by_hand.cut(), by_hand.labels(-1))
    with pytest.raises(SettingError, match="only one"):
        by_hand.cut(level=0, n_clusters=2)


def test_cut_into_no_clusters_is_refused(by_hand):
    for wrong in (0, "a", 2.5):
        with pytest.raises(SettingError, match=f"n_clusters={wrong!r} must be a whole number"):
            by_hand.cut(n_clusters=wrong)


def test_levels_of_different_hierarchies_are_refused():
    with pytest.raises(LevelError, match="level 0 has 1 clusters but level 1 merges 2 nodes"):
        Hierarchy([level([0, 0], [NAN, 1]), level([0, 0], [NAN, 1])])
    with pytest.raises(LevelError, match="at least one level"):
        Hierarchy([])


def test_a_level_checks_itself():
    with pytest.raises(LevelError, match="differ in length"):
        level([0, 0], [NAN])
    with pytest.raises(LevelError, match="peaks do not carry"):
        level([0, 0, 2], [NAN, 1, NAN], peaks=np.array([0, 1]))


def test_without_an_early_stop_the_last_level_is_where_it_would_end():
    assert Hierarchy([level([0, 0], [NAN, 1])]).early_stop_level == 0


def test_columns_hold_one_row_for_each_point(by_hand):
    columns = by_hand.to_columns(list("abcdef"))
    assert list(columns) == [
        "id", "cluster", "level_0", "level_1", "confidence", "density", "is_peak",
    ]  # fmt: skip
    assert {len(column) for column in columns.values()} == {6}
    assert columns["id"].tolist() == list("abcdef")
    np.testing.assert_array_equal(columns["cluster"], columns["level_1"])
    assert by_hand.to_columns()["id"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(SettingError, match="got 2 ids for 6 points"):
        by_hand.to_columns(["a", "b"])
