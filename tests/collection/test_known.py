"""What is known of a collection holds after every update, at every level."""

import numpy as np
import pytest

from hilander import Collection
from hilander.collection.known import APART, Column, Known, News, hold_review
from hilander.errors import FileFormatError, LabelError
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.io.digests import FileList
from hilander.synthetic.identities import make_identities

N_FIRST = 420


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=40, size=12, dim=16, spread=0.9, seed=5)


@pytest.fixture(scope="module")
def names(labelled):
    return np.array([f"i{row}" for row in range(len(labelled[1]))])


def say(rows, y, seed, names):
    """True statements of some rows, and photos of items of different identities."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(rows, (len(rows) // 6, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    inside = [(a, b) for one in np.unique(y[rows])[::4] for a, b in [rows[y[rows] == one][:2]]]
    as_names = lambda found: [(str(names[a]), str(names[b])) for a, b in found]  # noqa: E731
    return as_names([*pairs[same], *inside]), as_names(pairs[~same])


def break_count(collection):
    hierarchy = collection.hierarchy()
    broken = [
        hierarchy.constraints.count_broken(hierarchy.labels(level))
        for level in range(hierarchy.n_levels)
    ]
    assert all(set(one.values()) == {0} for one in broken), broken
    return hierarchy.constraints


@pytest.fixture(scope="module")
def first(labelled, names, tmp_path_factory):
    X, y = labelled
    folder = tmp_path_factory.mktemp("known") / "run"
    must, cannot = say(np.arange(N_FIRST), y, 0, names)
    photo = [f"p{row % 60}" if row % 3 == 0 else "" for row in range(N_FIRST)]
    photo = [p if y[row] % 2 else "" for row, p in enumerate(photo)]
    seen = set()
    for row, p in enumerate(photo):  # one of each identity in a photo
        photo[row] = "" if (p, y[row]) in seen else p
        seen.add((p, y[row]))
    labels = {str(names[row]): f"person {y[row]}" for row in range(0, N_FIRST, 17)}
    news = News(must, cannot, apart={"photo": photo}, labels=labels)
    Collection.create(folder).add(X[:N_FIRST], names[:N_FIRST], known=news)
    return folder


@pytest.fixture
def collection(first, tmp_path):
    import shutil

    shutil.copytree(first, tmp_path / "copy")
    return Collection.open(tmp_path / "copy")


def test_constraints_hold_at_every_level_after_updates(collection, labelled, names):
    X, y = labelled
    counts = break_count(collection).describe()
    assert min(counts.values()) > 10
    for start in range(N_FIRST, len(X), 20):
        rows = np.arange(start, min(start + 20, len(X)))
        must, cannot = say(np.arange(rows[-1] + 1), y, start, names)
        gone = names[start - 400 : start - 397]
        there = {*names[rows], *collection.ids} - {*gone}
        pairs = [[pair for pair in said if {*pair} <= there] for said in (must[-9:], cannot[:9])]
        done = collection.update(X[rows], names[rows], remove=gone, known=News(*pairs), rerun=False)
        assert not done.whole
        held = break_count(collection)
        place = {name: row for row, name in enumerate(collection.ids.tolist())}
        for a, b in pairs[0]:
            assert held.component[place[a]] == held.component[place[b]]
        left, right = (np.array([place[pair[side]] for pair in pairs[1]]) for side in (0, 1))
        assert held.are_apart(left, right).all()
    assert break_count(collection).describe()["apart_groups"] > counts["apart_groups"]


def test_an_update_without_news_keeps_what_was_known(collection, labelled, names):
    before = break_count(collection)
    collection.add(labelled[0][N_FIRST:], names[N_FIRST:], rerun=True)
    after = break_count(collection)
    np.testing.assert_array_equal(after.component[:N_FIRST], before.component)
    assert after.describe() == before.describe()


def test_new_items_are_compared_with_old_ones_by_their_columns_and_labels(
    collection, labelled, names
):
    """A new item in the photo of its own twin goes elsewhere; a known label brings it home."""
    X, y = labelled
    hierarchy = collection.hierarchy()
    photo = next(column for column in Known.load(collection._stored.files, N_FIRST).columns)
    assert (photo.kind, photo.name) == (APART, "photo")
    twin = int(np.flatnonzero(photo.codes >= 0)[0])
    labelled_row = 34
    assert y[labelled_row] != y[twin]
    collection.add(
        X[[twin, twin]] + 1e-3,
        ["apart", "home"],
        known=News(
            apart={"photo": [photo.values[photo.codes[twin]], None]},
            labels={"home": f"person {y[labelled_row]}"},
        ),
    )
    break_count(collection)
    labels = dict(zip(collection.ids.tolist(), collection.labels().tolist(), strict=True))
    assert labels["apart"] != labels[names[twin]]
    assert labels["home"] == labels[names[labelled_row]]
    assert hierarchy.n_points + 2 == len(collection)


def test_pairs_alone_change_only_the_clusters_that_break_them(collection, names):
    labels = collection.labels()
    known = collection.hierarchy().constraints
    free = np.setdiff1d(np.arange(N_FIRST), known.linked)
    free = free[np.diff(known.apart.indptr)[known.component[free]] == 0]
    free = free[known.known[known.component[free]] < 0]
    a = free[0]
    b = next(row for row in free if labels[row] != labels[a])
    done = collection.learn(News(must_link=[(names[a], names[b])]))
    now = collection.labels()
    assert now[a] == now[b]
    touched = np.isin(labels, labels[[a, b]])
    np.testing.assert_array_equal(now[~touched], labels[~touched])
    assert done.n_decoded == touched.sum()
    break_count(collection)


def test_news_that_contradict_what_was_known_are_refused(collection, names):
    known = collection.hierarchy().constraints
    linked = known.linked
    a = linked[0]
    b = np.flatnonzero(known.component == known.component[a])[1]
    before = collection.labels()
    with pytest.raises(LabelError, match=f"{names[a]} = {names[b]}, but {names[a]} ≠ {names[b]}"):
        collection.learn(News(cannot_link=[(names[a], names[b])]))
    np.testing.assert_array_equal(Collection.open(collection.folder).labels(), before)
    with pytest.raises(LabelError, match="names the id 'nobody'"):
        collection.learn(News(must_link=[(names[a], "nobody")]))
    with pytest.raises(LabelError, match="'nobody', which is no item"):
        collection.learn(News(labels={"nobody": "x"}))


def test_decisions_of_a_review_that_do_not_fit_are_listed(collection, names):
    known = collection.hierarchy().constraints
    a = known.linked[0]
    b = np.flatnonzero(known.component == known.component[a])[1]
    c, d = np.flatnonzero(known.component != known.component[a])[:2]
    apart = bool(known.are_apart(np.array([c]), np.array([d]))[0])
    must = [] if apart else [(names[c], names[d])]
    done = collection.learn(News(review=(must, [(names[a], names[b])])))
    assert done.conflicts == [f"{names[a]} and {names[b]} were reviewed as different"]
    held = break_count(collection)
    assert apart or held.component[c] == held.component[d]
    # The review may change: without the decision, it holds no longer.
    collection.learn(News(review=([], []), must_link=[(names[a], names[b])]))
    assert apart or break_count(collection).component[c] != held.component[a]
    assert break_count(collection).n_components == known.n_components


def test_removed_items_still_link_those_that_are_left():
    given = build_constraints(4, Knowledge(must_link=[(0, 1), (1, 2)]))
    kept = np.array([True, False, True, True])
    after = Known(given).extend(kept, News(), ["a", "c", "d"])
    assert after.constraints.component.tolist() == [0, 0, 1]


def test_only_decisions_that_contradict_others_are_left_out():
    names = [str(row) for row in range(40)]
    must = [(names[row], names[row + 1]) for row in range(30)]
    cannot = [("0", "35"), ("3", "9"), ("1", "36"), ("20", "29"), ("31", "32")]
    held, conflicts = hold_review(Constraints.none(40), News(review=(must, cannot)), names)
    assert conflicts == [
        "3 and 9 were reviewed as different",
        "20 and 29 were reviewed as different",
    ]
    assert held.are_apart(np.array([0, 1, 31]), np.array([35, 36, 32])).all()


def test_values_of_columns_mean_the_same_in_every_type(tmp_path):
    first = Known(Constraints.none(3), [Column.of_values(APART, "n", [7, -1, 9], 3)])
    names = ["a", "b", "c", "d", "e"]
    after = first.extend(np.ones(3, dtype=bool), News(apart={"n": [7.0, np.nan]}), names)
    assert after.constraints.are_apart(np.array([0, 0]), np.array([3, 4])).tolist() == [True, False]
    after.save(tmp_path)
    read = Known.load(FileList(tmp_path, {}), 5)
    assert read.columns[0].values == after.columns[0].values
    np.testing.assert_array_equal(read.columns[0].codes, after.columns[0].codes)
    (tmp_path / "known.npz").write_bytes(b"PK damaged")
    with pytest.raises(FileFormatError, match="damaged"):
        Known.load(FileList(tmp_path, {}), 5)


def test_few_items_keep_their_must_links(labelled, tmp_path):
    collection = Collection.create(tmp_path / "few")
    collection.add(labelled[0][:3], ["a", "b", "c"], known=News(must_link=[("a", "c")]))
    labels = collection.labels()
    assert labels[0] == labels[2] != labels[1]
