"""Collections on disk: items come and go, clusters keep their ids."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hilander import Collection, HiLander
from hilander.errors import EmbeddingError, FileFormatError, LabelError, OutputError, SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=30, size=14, dim=24, spread=0.5, seed=3)


@pytest.fixture(scope="module")
def names(labelled):
    return np.array([f"item-{row}" for row in range(len(labelled[0]))])


@pytest.fixture(scope="module")
def first(labelled, names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("collection") / "first"
    Collection.create(folder).add(labelled[0][:300], names[:300], labels=labelled[1][:300])
    return folder


@pytest.fixture
def collection(first, tmp_path):
    import shutil

    shutil.copytree(first, tmp_path / "copy")
    return Collection.open(tmp_path / "copy")


def test_added_items_join_clusters_that_keep_their_ids(collection, labelled, names):
    before = dict(zip(collection.ids.tolist(), collection.labels().tolist(), strict=True))
    done = collection.add(labelled[0][300:330], names[300:330])
    assert (done.n_added, done.n_removed, done.whole) == (30, 0, False)
    after = dict(zip(collection.ids.tolist(), collection.labels().tolist(), strict=True))
    assert np.mean([after[name] == before[name] for name in before]) > 0.98
    assert bcubed_f(labelled[1][:330], collection.labels()) > 0.98
    assert len(Collection.open(collection.folder)) == 330


def test_members_are_named_by_the_ids_of_items(collection):
    cluster = int(collection.labels()[7])
    assert "item-7" in collection.members(cluster)
    with pytest.raises(SettingError, match="cluster 99999 does not exist"):
        collection.members(99999)


def test_changes_say_what_joined_and_by_which_link(collection, labelled, names):
    collection.add(labelled[0][300:310], names[300:310])
    changes = collection.changes
    joined = (changes["change"] == "joined") & np.isin(changes["item"], names[300:310])
    assert joined.sum() == 10
    assert (changes["link_from"][joined] == changes["item"][joined]).all()
    assert (changes["linkage"][joined] > 0.5).mean() > 0.8
    after = dict(zip(collection.ids.tolist(), collection.labels().tolist(), strict=True))
    for at in np.flatnonzero(joined):
        assert after[changes["link_to"][at]] == changes["cluster"][at] == after[changes["item"][at]]


def test_removed_items_are_gone_and_listed(collection):
    gone = collection.ids[[3, 4]]
    done = collection.remove(gone)
    assert done.n_removed == 2
    assert not np.isin(gone, collection.ids).any()
    left = collection.changes["change"] == "left"
    assert set(collection.changes["item"][left]) == set(gone)
    assert collection.hierarchy().n_points == 298


def test_an_item_is_replaced_in_one_update(collection, labelled):
    done = collection.update(labelled[0][3:4], ["item-3"], remove=["item-3"])
    assert (done.n_added, done.n_removed) == (1, 1)
    assert collection.ids[-1] == "item-3"
    assert (
        bcubed_f(np.r_[labelled[1][:3], labelled[1][4:300], labelled[1][3]], collection.labels())
        > 0.98
    )


def test_a_set_that_has_grown_by_half_is_clustered_as_a_whole(collection, labelled, names):
    done = collection.add(labelled[0][300:], names[300:], rerun="auto")
    assert not done.whole
    more, _ = make_identities(n_identities=5, size=14, dim=24, spread=0.5, seed=9)
    ids = [f"more-{row}" for row in range(70)]
    assert "consider" not in done.reason
    assert collection.add(more, ids).whole
    assert not collection.add(more + 1e-3, [f"again-{row}" for row in range(70)]).whole


def test_ids_survive_a_rerun_of_the_whole(collection, labelled, names):
    before = collection.labels()
    done = collection.add(labelled[0][300:320], names[300:320], rerun=True)
    assert done.whole
    assert (collection.labels()[:300] == before).mean() > 0.95


def test_wrong_ids_are_refused_and_nothing_changes(collection, labelled, names):
    X = labelled[0]
    with pytest.raises(LabelError, match="has an item 'item-0' already"):
        collection.add(X[:2], ["item-0", "fresh"])
    with pytest.raises(LabelError, match="'twice' is given to several rows"):
        collection.add(X[:2], ["twice", "twice"])
    with pytest.raises(LabelError, match="have text as ids"):
        collection.add(X[:2])
    with pytest.raises(LabelError, match="has no item 'nobody'"):
        collection.remove(["nobody"])
    with pytest.raises(LabelError, match="got ids of shape"):
        collection.add(X[:2], ["one"])
    with pytest.raises(EmbeddingError, match="X has 7 features, the collection has 24"):
        collection.add(np.ones((1, 7)), ["one"])
    with pytest.raises(SettingError, match="nothing would be left"):
        collection.remove(collection.ids)
    with pytest.raises(SettingError, match="rerun='never' is not known"):
        collection.add(X[:1], ["one"], rerun="never")
    np.testing.assert_array_equal(Collection.open(collection.folder).labels(), collection.labels())


def test_a_collection_grows_from_nothing_one_item_at_a_time(tmp_path, labelled):
    collection = Collection.create(tmp_path / "new", HiLander.pretrained())
    with pytest.raises(SettingError, match="no items yet"):
        collection.hierarchy()
    assert len(collection.labels()) == 0
    for row in range(3):
        collection.add(labelled[0][row : row + 1])
    assert len(np.unique(collection.labels())) == 3
    collection.add(labelled[0][3:40])
    collection.remove([0])
    collection.add(labelled[0][40:41])
    assert collection.ids.tolist() == list(range(1, 41))


def test_a_collection_is_a_run_that_can_be_read_and_opened(collection, labelled, names):
    from hilander.explorer.run.run_folder import open_run

    collection.add(labelled[0][300:310], names[300:310], labels=labelled[1][300:310])
    run = open_run(collection.folder)
    assert run.n_points == 310
    assert run.graph is not None
    assert run.items.label_of(305) == str(labelled[1][305])
    hierarchy = Hierarchy.load(collection.folder)
    assert hierarchy.membership(top=1).clusters.shape == (310, 1)
    found = collection.assign(labelled[0][320:322], top=2)
    assert np.isin(found.clusters[:, 0], collection.labels()).all()


def test_a_folder_that_is_no_collection_is_refused(collection, tmp_path):
    with pytest.raises(OutputError, match="is not empty"):
        Collection.create(collection.folder)
    collection.hierarchy().save(tmp_path / "plain")
    with pytest.raises(FileFormatError, match=r"holds no collection\.json"):
        Collection.open(tmp_path / "plain")


@pytest.mark.slow
def test_an_update_that_is_killed_leaves_the_old_collection_or_the_new(
    collection, labelled, tmp_path
):
    np.savez(
        tmp_path / "new.npz", features=labelled[0][300:340], ids=np.arange(300, 340).astype(str)
    )
    command = [
        sys.executable,
        "-m",
        "hilander",
        "update",
        str(collection.folder),
        str(tmp_path / "new.npz"),
    ]
    sizes = {300, 340}
    for delay in np.random.default_rng(0).uniform(1.0, 6.0, size=6):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = Collection.open(collection.folder)
        assert len(found) in sizes
        assert len(found.labels()) == len(found.ids) == found.hierarchy().n_points
        if len(found) == 340:
            break
    Collection.open(collection.folder).add(labelled[0][340:341], ["last"])
    assert not [one for one in collection.folder.parent.iterdir() if one.name.startswith(".copy")]


def test_permuted_drops_give_the_same_clusters(tmp_path):
    """Also where identities overlap, so that another order of the rows could give others."""
    X, _ = make_identities(n_identities=50, size=9, dim=16, spread=1.1, seed=3)
    found = []
    for seed in range(3):
        collection = Collection.create(tmp_path / str(seed))
        rng = np.random.default_rng(seed)
        for rows in (np.arange(400), np.arange(400, 450)):
            rows = rng.permutation(rows) if seed else rows
            done = collection.add(X[rows], rows.astype(str))
        assert not done.whole
        assert done.n_decoded > 50
        labels = np.empty(len(X), dtype=np.int64)
        labels[collection.ids.astype(int)] = collection.labels()
        found.append(labels)
    assert bcubed_f(found[0], found[1]) == bcubed_f(found[0], found[2]) == 1
