"""Remarks on a run whose cluster sizes suggest a problem."""

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.cli.size_remarks import remark_on_sizes
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.synthetic.identities import make_identities


def group(*levels):
    """A hierarchy of the given labels of points, each level coarser than the one before."""
    made, below = [], np.arange(len(levels[0]))
    for labels in levels:
        nodes = labels[np.unique(below, return_index=True)[1]]
        peaks = np.unique(nodes, return_index=True)[1]
        linkage = np.where(peaks[nodes] == np.arange(len(nodes)), np.nan, 0.9)
        made.append(Level(peaks[nodes], linkage, np.ones(len(nodes)), nodes, peaks))
        below = labels
    return Hierarchy(made)


def remark(*levels, can_whiten=False, whitened=False):
    found = group(*levels)
    points, _ = make_identities(n_identities=len(levels[0]) // 5 + 1, size=5, dim=32, seed=0)
    points = points[: found.n_points]
    return remark_on_sizes(found, points, can_whiten=can_whiten, whitened=whitened)


def pairs(n_points, n_pairs):
    """Labels of `n_pairs` pairs; all other points are singletons."""
    return np.concatenate(
        [np.repeat(np.arange(n_pairs), 2), np.arange(n_pairs, n_points - n_pairs)]
    )


def test_nearly_all_singletons_give_a_remark():
    printed = remark(pairs(200, 4))
    assert printed.startswith("192 of 200 points are in a cluster of their own: either")
    assert "a lower --p-tau, or train on labels" in printed
    assert remark(pairs(200, 5)) == ""


def test_one_cluster_gives_a_remark_that_names_a_finer_level():
    printed = remark(np.zeros(60, int))
    assert printed.startswith("all points are in one cluster: either they are one identity, or")
    assert "a higher --p-tau, or train on labels" in printed
    assert "has more clusters" not in printed
    assert "(level_0 of clusters.parquet has more clusters)" in remark(
        np.arange(60) // 20, np.zeros(60, int)
    )
    assert remark(np.arange(60) // 30) == ""


def test_a_small_set_gives_no_remark():
    for n_points, is_remarked in ((50, False), (51, True)):
        for labels in (np.arange(n_points), np.zeros(n_points, int)):
            assert bool(remark(labels)) == is_remarked


@pytest.mark.parametrize("labels", [np.arange(60), np.zeros(60, int)])
def test_the_other_whitening_is_suggested_if_it_can_be_chosen(labels):
    assert "--p-tau, --whiten yes, or" in remark(labels, can_whiten=True)
    assert "--p-tau, --whiten no, or" in remark(labels, can_whiten=True, whitened=True)
    assert "--whiten" not in remark(labels)


def test_hilander_cluster_prints_the_remark(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(120, 32))
    np.save(tmp_path / "noise.npy", X)
    np.save(tmp_path / "fine.npy", make_identities(n_identities=12, size=10, dim=32, seed=0)[0])
    command = ["-o", f"{tmp_path}/run", "--whiten", "no"]
    assert main(["cluster", f"{tmp_path}/noise.npy", *command, "--p-tau", "0.95"]) == 0
    assert "points are in a cluster of their own: " in capsys.readouterr().out
    assert main(["cluster", f"{tmp_path}/fine.npy", *command]) == 0
    assert "of their own" not in capsys.readouterr().out


def test_parts_of_one_cloud_give_a_remark(tmp_path, capsys):
    cloud = np.random.default_rng(0).normal(size=(300, 32)) + 3
    np.save(tmp_path / "cloud.npy", cloud.astype(np.float32))
    assert main(["cluster", str(tmp_path / "cloud.npy"), "-o", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "these 300 points form one cloud without gaps, and the " in printed
    assert "the points may be one identity, or one identity each" in printed


def test_separate_identities_are_no_cloud():
    points, labels = make_identities(n_identities=30, size=8, dim=32, seed=0)
    assert remark_on_sizes(group(labels), points, can_whiten=True, whitened=False) == ""
    cloud = np.random.default_rng(0).normal(size=points.shape)
    assert remark_on_sizes(group(labels), cloud, can_whiten=True, whitened=False) != ""
