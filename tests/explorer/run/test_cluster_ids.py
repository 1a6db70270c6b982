"""Clusters of the last level are numbered by their ids, in every part of the explorer."""

import csv
import io
import json

import numpy as np
import pytest

from hilander.errors import FileFormatError
from hilander.explorer.api.exports import export_labels
from hilander.explorer.api.payloads.clusters import ClusterQuery, describe_cluster, list_clusters
from hilander.explorer.api.payloads.overview import describe_run
from hilander.explorer.report.facts import gather_facts
from hilander.explorer.session.opening import open_explorer
from hilander.hierarchy.hierarchy import Hierarchy


def give_ids(folder, seed=5):
    """Give the clusters of a run other ids than their numbers; the dict from number to id."""
    path = folder / "hierarchy.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    n_clusters = Hierarchy.load(folder).n_clusters()
    ids = np.random.default_rng(seed).permutation(3 * n_clusters)[:n_clusters]
    np.savez(path, **arrays | {"cluster_ids": ids})
    forget_digests(folder)
    return ids


def forget_digests(folder):
    """Let the files of a run be others than those that were written."""
    marker = folder / "hilander.json"
    notes = json.loads(marker.read_text())
    for name in ("files", "digests"):
        notes.pop(name, None)
    marker.write_text(json.dumps(notes | {"files": []}))


@pytest.fixture
def ids(run_folder):
    return give_ids(run_folder)


@pytest.fixture
def explorer(ids, run_folder):
    opened = open_explorer(run_folder)
    yield opened
    opened.store.close()


def test_every_view_has_the_ids(explorer, ids):
    labels = ids[explorer.run.hierarchy.labels()]
    last = explorer.run.n_levels - 1
    for level in ("reviewed", str(last)):
        grouping = explorer.grouping(level)
        page = list_clusters(grouping, ClusterQuery(limit=500))
        assert sorted(card["cluster"] for card in page["items"]) == sorted(ids)
        for one in ids:
            rows = np.flatnonzero(labels == one)
            assert set(grouping.members(int(one))) == set(rows)
            assert describe_cluster(grouping, int(one))["size"] == len(rows)
    described = describe_run(explorer)
    assert described["n_clusters"] == described["levels"][-1]["n_clusters"] == len(ids)
    below = explorer.grouping(str(last - 1))
    for cluster in range(below.n_groups):
        above = describe_cluster(below, cluster)["above"]
        assert {above} == set(labels[below.rows_of(cluster)])
    report = gather_facts(explorer)
    assert set(report.shown[0].clusters) <= set(ids.tolist())
    assert report.summary["clusters"] == str(len(ids))


def test_the_exported_labels_are_the_ids(explorer, ids):
    rows = list(csv.DictReader(io.StringIO(export_labels(explorer, "csv").decode())))
    found = [int(row["cluster"]) for row in rows]
    np.testing.assert_array_equal(found, ids[explorer.run.hierarchy.labels()])


def test_a_new_cluster_of_the_review_gets_a_number_that_was_never_an_id(run_folder, ids):
    (run_folder / "collection.json").write_text(
        json.dumps(
            {"next_cluster": 900, "next_row": 0, "n_updates": 1, "asked": {}, "whiten": False}
        )
    )
    explorer = open_explorer(run_folder)
    large = int(explorer.reviewed().order("size")[0])
    explorer.act("move", {"rows": explorer.reviewed().members(large)[:1].tolist()})
    assert explorer.review.state.labels.max() == 900
    explorer.store.close()


def test_a_review_of_dense_numbers_goes_on_with_the_ids(run_folder):
    explorer = open_explorer(run_folder)
    rows = explorer.reviewed().members(3)
    explorer.act("name", {"group": 3, "name": "Ada"})
    explorer.store.close()
    ids = give_ids(run_folder)
    again = open_explorer(run_folder)
    assert again.review.state.names == {int(ids[3]): "Ada"}
    assert set(again.reviewed().members(int(ids[3]))) == set(rows)
    again.store.close()


@pytest.mark.parametrize("wrong", [-1, 0, 1 << 50])
def test_ids_that_cannot_be_are_an_error(run_folder, ids, wrong):
    path = run_folder / "hierarchy.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["cluster_ids"][:2] = 0 if wrong == 0 else wrong, 1
    if wrong == 0:
        arrays["cluster_ids"][1] = 0
    np.savez(path, **arrays)
    with pytest.raises(FileFormatError, match="ids of clusters"):
        open_explorer(run_folder)
