import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage

from hilander import HiLander
from hilander.errors import SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.merge_tree import LevelLinks, MergeTree, build_merge_tree, drop_small
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.metrics import dendrogram_purity
from hilander.synthetic.identities import make_identities
from tests.scorers import score_by_affinity


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


def level_of(labels):
    """A level of these clusters that edges of the points join."""
    nothing = np.arange(0)
    return LevelLinks(np.asarray(labels), nothing, nothing, np.zeros(0, dtype=np.float32))


def is_nested(fine, coarse):
    return len(np.unique(np.stack([fine, coarse]), axis=1).T) == len(np.unique(fine))


@pytest.fixture(scope="module")
def found():
    """A hierarchy of several levels with its graph, from a scorer that makes mistakes."""
    features, labels = make_identities(n_identities=20, size=15, dim=16, spread=0.8, seed=3)
    steps = walk_levels(features, score_by_affinity, Rules(k=3, p_tau=0.5))
    return Hierarchy.of_steps(steps, keep_graph=True), labels


def test_every_level_is_a_set_of_subtrees(found):
    hierarchy, _ = found
    tree = hierarchy.tree
    members = [{point} for point in range(tree.n_points)]
    for left, right in tree.children:
        members.append(members[left] | members[right])
    subtrees = {frozenset(one) for one in members}
    assert hierarchy.n_levels >= 2
    for level in range(hierarchy.n_levels):
        labels = hierarchy.labels(level)
        for cluster in range(hierarchy.n_clusters(level)):
            assert frozenset(np.flatnonzero(labels == cluster).tolist()) in subtrees


def test_a_cut_at_one_half_is_the_final_partition(found):
    hierarchy, _ = found
    assert same_partition(hierarchy.cut(p=0.5), hierarchy.labels(-1))


def test_lower_cuts_only_merge(found):
    hierarchy, _ = found
    cuts = [hierarchy.cut(p=p) for p in (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, 0.0)]
    for fine, coarse in pairwise(cuts):
        assert is_nested(fine, coarse)
    assert len(np.unique(cuts[0])) > len(np.unique(cuts[-1]))


def test_heights_fall_from_the_points_to_the_root(found):
    tree = found[0].tree
    below = np.ones(tree.n_points + tree.n_merges)
    below[tree.n_points :] = tree.height
    assert (tree.height[:, None] <= below[tree.children]).all()
    assert (np.diff(tree.height) <= 0).all()
    assert ((tree.height >= 0) & (tree.height <= 1)).all()


@pytest.mark.parametrize("n_clusters", [1, 2, 7, 20, 150, 300])
def test_a_cut_into_a_number_gives_exactly_that_number(found, n_clusters):
    labels = found[0].cut(n_clusters=n_clusters)
    assert labels.tolist()[0] == 0
    np.testing.assert_array_equal(np.unique(labels), np.arange(n_clusters))


def test_small_clusters_are_noise_where_asked_for(found):
    hierarchy, _ = found
    plain, labels = hierarchy.labels(-1), hierarchy.cut(min_size=5)
    sizes = np.bincount(plain)
    np.testing.assert_array_equal(labels == -1, sizes[plain] < 5)
    kept = labels >= 0
    assert same_partition(labels[kept], plain[kept])
    np.testing.assert_array_equal(np.unique(labels[kept]), np.arange((sizes >= 5).sum()))
    assert (drop_small(plain, 1) == plain).all()


def test_scipy_reads_the_tree_and_cuts_it_likewise(found):
    hierarchy, _ = found
    linkage = hierarchy.to_scipy_linkage()
    assert linkage.shape == (hierarchy.n_points - 1, 4)
    assert is_valid_linkage(linkage)
    for n_clusters in (3, 40):
        by_scipy = fcluster(linkage, n_clusters, "maxclust")
        if len(np.unique(by_scipy)) == n_clusters:  # equal heights cannot be separated by scipy
            assert same_partition(by_scipy, hierarchy.cut(n_clusters=n_clusters))
    by_height = fcluster(linkage, 0.5, "distance")
    assert same_partition(by_height, hierarchy.cut(p=0.5))


def test_networkx_gets_every_node_with_its_size_and_height(found):
    networkx = pytest.importorskip("networkx")
    tree = found[0].tree
    graph = found[0].to_networkx()
    assert graph.number_of_nodes() == tree.n_points + tree.n_merges
    assert networkx.is_forest(graph)
    last = tree.n_points + tree.n_merges - 1
    leaves = [node for node in networkx.descendants(graph, last) if node < tree.n_points]
    assert graph.nodes[last]["size"] == len(leaves)
    assert graph.nodes[last]["height"] == pytest.approx(float(tree.height[-1]))


def test_newick_with_heights_holds_every_point_once_and_lengths_add_up(found):
    hierarchy, _ = found
    text = hierarchy.to_newick(heights=True)
    names = re.findall(r"[(,]'?(\d+)'?:", text)
    assert sorted(map(int, names)) == list(range(hierarchy.n_points))
    lengths = [float(one) for one in re.findall(r":(-?[0-9.]+)", text)]
    assert min(lengths) >= 0
    assert text.count("(") == hierarchy.n_points - 1


def test_perfect_linkage_gives_a_pure_tree():
    features, labels = make_identities(n_identities=12, size=10, dim=16, spread=0.6, seed=0)
    steps = walk_levels(features, LabelScorer(labels), Rules(k=4))
    hierarchy = Hierarchy.of_steps(steps, keep_graph=True)
    assert dendrogram_purity(labels, hierarchy.tree.children) == pytest.approx(1)


def test_renumbering_the_points_renumbers_the_tree(found):
    features, _ = make_identities(n_identities=8, size=10, dim=16, spread=0.7, seed=5)
    order = np.random.default_rng(0).permutation(len(features))
    rules = Rules(k=4, p_tau=0.6)
    one, two = (
        Hierarchy.of_steps(walk_levels(rows, score_by_affinity, rules), keep_graph=True)
        for rows in (features, features[order])
    )
    assert same_partition(one.cut(p=0.8)[order], two.cut(p=0.8))
    np.testing.assert_allclose(one.tree.height, two.tree.height, atol=1e-6)


def test_a_large_star_takes_few_rounds():
    n_points = 3_000
    neighbours = np.zeros((n_points, 1), dtype=np.int64)
    neighbours[0] = 1
    linkage = np.full((n_points, 1), 0.9, dtype=np.float32)
    tree = build_merge_tree(neighbours, linkage, [level_of(np.zeros(n_points, dtype=np.int64))])
    assert tree.n_merges == n_points - 1


def test_unconnected_points_stay_apart_until_a_number_is_asked_for():
    neighbours = np.array([[1], [0], [3], [2]])
    tree = build_merge_tree(neighbours, np.full((4, 1), 0.9, np.float32), [level_of([0, 0, 1, 1])])
    assert tree.cut(0.0).tolist() == [0, 0, 1, 1]
    assert tree.cut_into(1).tolist() == [0, 0, 0, 0]
    assert tree.completed().height[-1] == 0


def test_edges_of_linkage_zero_join_points_last():
    neighbours = np.array([[1], [0], [3], [0]])
    linkage = np.array([[0.9], [0.9], [0.0], [0.0]], dtype=np.float32)
    tree = build_merge_tree(neighbours, linkage, [level_of([0, 0, 1, 2])])
    assert tree.n_merges == 3
    assert tree.cut(0.5).tolist() == [0, 0, 1, 2]


def test_a_fitted_model_and_a_stored_run_have_the_same_tree(tmp_path):
    from hilander.cli.main import main

    X, _ = make_identities(n_identities=15, size=9, dim=16, spread=0.45, seed=1)
    np.save(tmp_path / "X.npy", X)
    hierarchy = HiLander.pretrained(device="cpu").cluster(X)
    out = str(tmp_path / "run")
    assert main(["cluster", str(tmp_path / "X.npy"), "-o", out, "--quiet"]) == 0
    stored = Hierarchy.load(out)
    np.testing.assert_array_equal(stored.tree.children, hierarchy.tree.children)
    np.testing.assert_array_equal(stored.cut(n_clusters=4), hierarchy.cut(n_clusters=4))


def test_a_hierarchy_without_its_graph_says_how_to_get_a_tree(found):
    bare = Hierarchy(found[0].levels)
    with pytest.raises(SettingError, match="made without its graph"):
        bare.cut(p=0.7)
    np.testing.assert_array_equal(bare.cut(min_size=1), bare.labels(-1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 1.5}, "not a probability"),
        ({"n_clusters": 301}, "impossible for 300 points"),
        ({"n_clusters": 0}, "whole number >= 1"),
        ({"min_size": 2.5}, "whole number >= 1"),
        ({"p": 0.5, "level": 0}, "only one of"),
    ],
)
def test_a_cut_that_is_impossible_is_refused(found, arguments, message):
    with pytest.raises(SettingError, match=message):
        found[0].cut(**arguments)


def test_a_tree_checks_itself():
    with pytest.raises(SettingError, match="two children"):
        MergeTree(3, np.array([[0, 1]]), np.array([0.9, 0.8]))
    with pytest.raises(SettingError, match="heights rise"):
        MergeTree(3, np.array([[0, 1], [3, 2]]), np.array([0.8, 0.9]))
    with pytest.raises(SettingError, match="give the graph of the points"):
        build_merge_tree(np.zeros((3, 1), int), np.zeros((3, 1)), [level_of([0, 0])])
