"""Payloads of the API against direct computations."""

import json

import numpy as np
import pytest

from hilander.errors import HiLanderError, LevelError, SettingError
from hilander.explorer.api.payloads import comparing, overview, points, reviewing
from hilander.explorer.api.payloads.clusters import (
    ClusterQuery,
    build_icicle,
    describe_cluster,
    list_clusters,
    list_members,
    list_nearest,
    list_parts,
)
from hilander.explorer.session.opening import open_explorer
from hilander.metrics.report import score_clustering


def read_all(page_maker, limit=7):
    """Read all entries of a paged list, page by page."""
    found, offset = [], 0
    while offset is not None:
        page = page_maker(offset, limit)
        assert len(page["items"]) <= limit
        found += page["items"]
        offset = page["next"]
    assert len(found) == page["total"]
    return found


def test_the_overview_counts_points_and_clusters(explorer):
    explorer.precompute()
    payload = overview.describe_run(explorer)
    json.dumps(payload, allow_nan=False)
    assert payload["n_points"] == 252
    assert sum(one["points"] for one in payload["sizes"]) == 252
    assert sum(one["clusters"] for one in payload["sizes"]) == payload["n_clusters"]
    truth = explorer.run.items.labels.codes
    for level in payload["levels"]:
        expected = score_clustering(truth, explorer.run.hierarchy.labels(level["level"])).to_dict()
        assert level["scores"] == expected


@pytest.mark.parametrize("level", ["reviewed", "0", "1"])
@pytest.mark.parametrize("sort", ["size", "doubt", "quality", "purity", "number"])
def test_pages_of_clusters_are_all_clusters_in_order(explorer, level, sort):
    grouping = explorer.grouping(level)
    cards = read_all(lambda o, n: list_clusters(grouping, ClusterQuery(sort, offset=o, limit=n)))
    assert sorted(card["cluster"] for card in cards) == list(range(grouping.n_groups))
    sign = {"size": -1, "doubt": -1, "quality": -1, "purity": 1, "number": 1}[sort]
    field = "cluster" if sort == "number" else sort
    values = [sign * card[field] for card in cards]
    assert values == sorted(values)
    for card in cards:
        assert card["exemplars"][0]["row"] == grouping.peaks[card["cluster"]]


def test_clusters_are_filtered_and_searched(explorer):
    explorer.act("name", {"group": 3, "name": "Zebra Crossing"})
    explorer.act("junk", {"group": 4, "junk": True})
    grouping = explorer.reviewed()

    def found(**query):
        page = list_clusters(grouping, ClusterQuery(limit=200, **query))
        return {card["cluster"] for card in page["items"]}

    assert found(search="zebra") == {3}
    assert found(search="#5") == {5}
    assert found(search="item-0007") == {int(grouping.labels[7])}
    assert found(state="named") == {3}
    assert found(state="junk") == {4}
    assert 3 not in found(state="unnamed")
    sizes = grouping.sizes
    assert found(min_size=10, max_size=18) == set(np.flatnonzero((sizes >= 10) & (sizes <= 18)))
    assert found(search="no such thing") == set()
    for wrong in ({"sort": "beauty"}, {"state": "odd"}):
        with pytest.raises(SettingError):
            found(**wrong)


def test_a_cluster_has_members_parts_and_identities(explorer):
    grouping = explorer.reviewed()
    group = int(grouping.order("size")[0])
    detail = describe_cluster(grouping, group)
    members = read_all(lambda o, n: list_members(grouping, group, o, n))
    assert sorted(one["row"] for one in members) == sorted(np.flatnonzero(grouping.labels == group))
    assert detail["size"] == len(members)
    counted = sum(one["count"] for one in detail["identities"]["commonest"])
    assert counted == len(members) or detail["identities"]["total"] > 12
    parts = read_all(lambda o, n: list_parts(grouping, group, None, o, n))
    assert sum(part["size"] for part in parts) == len(members)


def test_nearest_clusters_are_ranked_by_the_linkage_of_edges(explorer):
    grouping = explorer.reviewed()
    graph = explorer.run.graph
    for group in range(grouping.n_groups):
        rows = grouping.rows_of(group)
        sums = {}
        for row in rows.tolist():
            for place in range(graph.k):
                other = int(grouping.labels[graph.neighbours[row, place]])
                if other != group:
                    sums[other] = sums.get(other, 0.0) + float(graph.linkage[row, place])
        payload = list_nearest(grouping, group, 200)["items"]
        assert {one["cluster"] for one in payload} == set(sums)
        for one in payload:
            expected = sums[one["cluster"]] / (len(rows) * graph.k)
            assert one["linkage"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("min_size", [1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 40])
def test_the_icicle_covers_every_point_once_at_every_level(explorer, min_size):
    payload = build_icicle(explorer, 0, None, min_size)
    for level in payload["levels"]:
        covered = np.zeros(252, dtype=int)
        for bar in level["bars"] + level["rest"]:
            covered[bar["start"] : bar["start"] + bar["size"]] += 1
        assert (covered == 1).all()
        assert sum(bar["count"] for bar in level["rest"]) == level["hidden"]


def test_a_range_of_the_icicle_shows_the_clusters_in_it(explorer):
    whole = {bar["cluster"] for bar in build_icicle(explorer, 0, None, 1)["levels"][-1]["bars"]}
    halves = [
        build_icicle(explorer, *stretch, 1)["levels"][-1]["bars"]
        for stretch in ((0, 99), (99, 252))
    ]
    assert {bar["cluster"] for half in halves for bar in half} == whole
    with pytest.raises(SettingError):
        build_icicle(explorer, 252, None, 1)


def test_a_point_has_neighbours_and_a_path_to_its_peak(explorer):
    run = explorer.run
    for row in range(0, 252, 9):
        payload = points.describe_point(explorer, row)
        assert [one["row"] for one in payload["neighbours"]] == run.graph.neighbours[row].tolist()
        assert [one["cluster"] for one in payload["levels"]] == [
            int(run.hierarchy.labels(level)[row]) for level in range(run.n_levels)
        ]
        final = int(run.hierarchy.peaks(-1)[run.hierarchy.labels(-1)[row]])
        ends = payload["path"][-1]["row"] if payload["path"] else row
        assert ends == final
    with pytest.raises(LevelError):
        points.describe_point(explorer, 252)


def test_the_map_is_the_same_as_bytes_and_as_pages(explorer):
    page = points.list_map_points(explorer, 0, 200)
    assert page["method"] in ("tsne", "umap", "pca")
    rows = read_all(lambda o, n: points.list_map_points(explorer, o, n), 50)
    columns = np.frombuffer(points.encode_map(explorer), dtype="<i4").reshape(7, -1)
    assert columns[0].tolist() == [one["row"] for one in rows]
    assert columns[3].tolist() == [one["cluster"] for one in rows]
    x = columns[1].view("<f4")
    np.testing.assert_allclose(x, [one["x"] for one in rows], atol=1e-4)
    assert np.abs(x).max() <= 1
    assert set(columns[0].tolist()) == set(explorer.run.hierarchy.peaks(0).tolist())
    assert columns[6].tolist() == explorer.reviewed().sizes[columns[3]].tolist()
    fewer = np.frombuffer(points.encode_map(explorer, 10), dtype="<i4").reshape(7, -1)
    assert 5 < fewer.shape[1] <= 10
    assert set(fewer[0].tolist()) < set(columns[0].tolist())
    again = open_explorer(explorer.run.folder)
    assert points.encode_map(again) == points.encode_map(explorer)


def test_centres_of_clusters_have_their_name_and_the_picture_of_their_peak(explorer):
    group = int(explorer.reviewed().order("size")[0])
    explorer.act("name", {"group": group, "name": "tulips"})
    [one] = points.describe_centres(explorer, f"{group},99999")["items"]
    grouping = explorer.reviewed()
    assert (one["cluster"], one["name"], one["size"]) == (
        group, "tulips", int(grouping.sizes[group])
    )  # fmt: skip
    assert f"/items/{int(grouping.peaks[group])}/image" in one["image"]
    assert points.describe_centres(explorer, "") == {"items": []}
    for wrong in ("1;2", "-1", ",".join(["1"] * 61)):
        with pytest.raises(SettingError, match="up to 60 numbers"):
            points.describe_centres(explorer, wrong)


def test_a_minimal_run_gives_reasons_for_missing_values(make_run):
    explorer = open_explorer(make_run("bare", bare=True))
    explorer.precompute()
    grouping = explorer.reviewed()
    assert list_nearest(grouping, 0, 5)["reason"]
    assert points.list_map_points(explorer, 0, 5)["reason"]
    assert reviewing.list_questions(explorer, "pair", 0, 5)["reason"]
    assert points.describe_point(explorer, 0)["neighbours"] == []
    assert overview.describe_run(explorer)["levels"][0]["scores"] is None
    with pytest.raises(SettingError, match="nothing to compare"):
        comparing.compare_partitions(explorer, "labels")


def test_the_log_lists_every_event(explorer):
    explorer.act("name", {"group": 0, "name": "n"})
    explorer.act("merge", {"groups": [0, 1]})
    explorer.act("undo", {})
    explorer.act("junk", {"group": 2, "junk": True})
    payload = read_all(lambda o, n: reviewing.list_events(explorer, o, n), 2)
    assert [one["kind"] for one in payload] == ["junk", "undo", "merge", "name"]
    assert [one["holds"] for one in payload] == [True, False, False, True]
    assert all(one["text"] for one in payload)


def test_a_comparison_counts_splits_and_merges(explorer):
    ours, theirs = explorer.reviewed().labels, explorer.run.items.labels.codes
    payload = comparing.compare_partitions(explorer, "labels")
    pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
    per_ours = [len({b for a, b in pairs if a == one}) for one in set(ours.tolist())]
    per_theirs = [len({a for a, b in pairs if b == one}) for one in set(theirs.tolist())]
    assert payload["n_split"] == sum(n > 1 for n in per_ours)
    assert payload["n_merged"] == sum(n > 1 for n in per_theirs)
    splits = read_all(lambda o, n: comparing.list_differences(explorer, "labels", "split", o, n))
    assert len(splits) == payload["n_split"]
    misplaced = [one["misplaced"] for one in splits]
    assert misplaced == sorted(misplaced, reverse=True)
    for row, column, count in payload["matrix"]["cells"]:
        cluster, name = payload["matrix"]["rows"][row], payload["matrix"]["columns"][column]
        label = explorer.run.items.labels.names.tolist().index(name)
        assert ((ours == cluster) & (theirs == label)).sum() == count


def test_a_run_compared_with_itself_is_identical(run_folder):
    explorer = open_explorer(run_folder, compare=[run_folder])
    payload = comparing.compare_partitions(explorer, f"run:{run_folder.name}")
    assert payload["n_identical"] == payload["n_ours"] == payload["n_theirs"]
    assert payload["scores"]["pairwise_f"] == 1
    explorer.act("merge", {"groups": [0, 1]})
    payload = comparing.compare_partitions(explorer, "level:original")
    assert payload["n_split"] == 1
    for wrong in ("run:nowhere", "level:77", "level:", "x", "run:../.."):
        with pytest.raises(HiLanderError):
            comparing.compare_partitions(explorer, wrong)
