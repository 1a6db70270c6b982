from itertools import pairwise
from weakref import ref

import numpy as np
import pytest

from hilander.errors import GraphError
from hilander.graph.scores import EdgeScores
from hilander.hierarchy import levels
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import (
    UPPER_RECALL,
    walk_levels,
)
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities
from tests.scorers import FunctionScorer


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


def cluster(features, scorer, **rules):
    return Hierarchy.of_steps(walk_levels(features, scorer, Rules(**rules)))


@FunctionScorer
def link_nothing(graph, nodes):
    return EdgeScores(np.zeros(graph.affinity.shape, np.float32), np.zeros(len(nodes), np.float32))


@FunctionScorer
def link_everything(graph, nodes):
    return EdgeScores(np.ones(graph.affinity.shape, np.float32), np.zeros(len(nodes), np.float32))


@FunctionScorer
def link_even_nodes(graph, nodes):
    """About half of the nodes of every level find a parent, so each level adds many edges."""
    density = np.arange(len(nodes), dtype=np.float32) / len(nodes)
    linkage = np.zeros(graph.affinity.shape, np.float32)
    linkage[::2] = 1
    return EdgeScores(linkage, density)


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_perfect_scorer_recovers_the_identities(k, seed):
    features, labels = make_identities(seed=seed, spread=0.3)
    found = cluster(features, LabelScorer(labels), k=k)
    assert same_partition(found.labels(-1), labels)


def test_a_perfect_scorer_recovers_identities_of_very_different_sizes():
    sizes = [1] * 10 + [2] * 10 + [5, 30, 200]
    features, labels = make_identities(sizes=sizes, spread=0.25, dim=48, seed=1)
    assert same_partition(cluster(features, LabelScorer(labels), k=6).labels(-1), labels)


def test_a_perfect_scorer_never_joins_two_identities_however_hard_the_data():
    features, labels = make_identities(spread=1.5, seed=0)
    found = cluster(features, LabelScorer(labels), k=5)
    for level in range(found.n_levels):
        at_level = found.labels(level)
        assert len(np.unique(np.stack([at_level, labels]), axis=1).T) == found.n_clusters(level)


@pytest.mark.parametrize("n_identities", [12, 20])
def test_well_separated_identities_with_negative_cosines_are_no_trouble(n_identities):
    features, labels = make_identities(n_identities=n_identities, size=6, spread=0.1, seed=5)
    steps = list(walk_levels(features, LabelScorer(labels), Rules(k=9)))
    assert min(step.graph.affinity.min() for step in steps) < 0
    assert same_partition(Hierarchy.of_steps(steps).labels(-1), labels)


def test_points_that_are_all_one_identity_end_in_one_cluster():
    features, _ = make_identities(n_identities=1, size=60, seed=0)
    found = cluster(features, LabelScorer(np.zeros(60, dtype=np.int64)), k=4)
    assert found.n_clusters(-1) == 1
    assert not found.labels(-1).any()


def test_levels_of_at_most_k_nodes_use_all_the_others():
    features, labels = make_identities(n_identities=2, size=40, spread=0.1, seed=0)
    steps = list(walk_levels(features, LabelScorer(labels), Rules(k=30)))
    for step in steps:
        assert step.graph.k == min(30, len(step.nodes) - 1)
    assert steps[-1].graph.n_nodes <= 30
    assert len(steps[-1].peaks) == 2


def test_everything_linked_ends_in_one_node_and_stops_there():
    features, _ = make_identities(seed=0)
    steps = list(walk_levels(features, link_everything, Rules(k=5)))
    assert len(steps[-1].peaks) == 1
    assert len(steps[-1].nodes) > 1


def test_two_points_are_enough():
    features = np.eye(2, dtype=np.float32)
    assert cluster(features, link_everything, k=1).n_clusters(-1) == 1
    assert cluster(features, link_nothing, k=1).n_clusters(-1) == 2


def test_where_nothing_links_there_is_one_level_of_singletons():
    features, _ = make_identities(n_identities=5, size=5, seed=0)
    found = cluster(features, link_nothing, k=3)
    assert found.n_levels == 1
    np.testing.assert_array_equal(found.labels(), np.arange(25))
    assert found.levels[0].stops_early


def test_the_loop_stops_when_nothing_merges_and_each_level_only_merges(affinity_scorer):
    features, _ = make_identities(spread=0.7, seed=2)
    steps = list(walk_levels(features, affinity_scorer, Rules(k=4, p_tau=0.6)))
    assert len(steps) > 2
    for step, following in pairwise(steps):
        assert len(step.peaks) == len(following.nodes) < len(step.nodes)
        assert step.parents.n_edges == len(step.nodes) - len(step.peaks)
    assert steps[-1].parents.n_edges == 0
    assert steps[-1].stops_early


def test_parents_are_at_least_as_dense_at_every_level(affinity_scorer):
    features, _ = make_identities(spread=0.7, seed=2)
    for step in walk_levels(features, affinity_scorer, Rules(k=4, p_tau=0.5)):
        assert (step.scores.density[step.parents.index] >= step.scores.density).all()


def test_never_more_levels_than_asked_for(affinity_scorer):
    features, _ = make_identities(spread=0.7, seed=2)
    assert len(list(walk_levels(features, affinity_scorer, Rules(k=4), max_levels=2))) == 2


def test_early_stop_ends_at_the_first_level_that_says_so():
    features, _ = make_identities(spread=0.7, seed=2)
    whole = list(walk_levels(features, link_even_nodes, Rules(k=4), max_levels=4))
    short = list(walk_levels(features, link_even_nodes, Rules(k=4, early_stop=True)))
    first = [step.stops_early for step in whole].index(True)
    assert first < len(whole) - 1
    assert len(short) == first + 1
    np.testing.assert_array_equal(short[-1].labels, whole[first].labels)
    edges = [step.parents.n_edges for step in whole]
    expected = [now * 4 > before for before, now in pairwise(edges)]
    assert [step.stops_early for step in whole[1:]] == expected


def test_a_known_graph_takes_the_place_of_the_first_search(affinity_scorer):
    features, _ = make_identities(n_identities=8, size=10, seed=1)
    graph = build_knn_graph(features, 5)
    steps = walk_levels(features, affinity_scorer, Rules(k=5), graph=graph)
    first = next(steps)
    assert first.graph is graph
    own = cluster(features, affinity_scorer, k=5)
    given = Hierarchy.of_steps(walk_levels(features, affinity_scorer, Rules(k=5), graph=graph))
    np.testing.assert_array_equal(own.labels(), given.labels())


def test_fewer_points_than_k_are_refused(affinity_scorer):
    with pytest.raises(GraphError, match="k=10 needs 11 embeddings, got only 4; use k <= 3"):
        next(walk_levels(np.eye(4, dtype=np.float32), affinity_scorer, Rules(k=10)))


def test_searching_by_the_average_uses_the_mean_of_the_points(affinity_scorer):
    features, _ = make_identities(n_identities=10, size=12, spread=0.6, seed=0)
    rules = Rules(k=4, p_tau=0.5, search_average=True)
    steps = list(walk_levels(features, affinity_scorer, rules))
    average = steps[1].nodes.average
    unit = average / np.linalg.norm(average, axis=1, keepdims=True)
    np.testing.assert_allclose(
        steps[1].graph.affinity, build_knn_graph(unit, 4).affinity, atol=1e-6
    )


def test_the_released_training_scorer_ignores_identities():
    features, labels = make_identities(spread=1.2, seed=0)
    rules = Rules(k=5, p_tau=0.0, as_released=True)
    first = next(walk_levels(features, LabelScorer(labels, as_released=True), rules))
    linked = first.parents.index != np.arange(len(features))
    assert (labels[first.parents.index] != labels)[linked].any()
    density = first.scores.density
    for node in range(len(features)):
        reached = first.graph.neighbours[node]
        allowed = (density[reached] > density[node]) & (first.graph.affinity[node] > 0)
        expected = reached[allowed.argmax()] if allowed.any() else node
        assert first.parents.index[node] == expected


def test_renumbering_the_points_renumbers_the_partition(affinity_scorer):
    features, _ = make_identities(spread=0.6, seed=7)
    order = np.random.default_rng(0).permutation(len(features))
    one = cluster(features, affinity_scorer, k=5, p_tau=0.6)
    two = cluster(features[order], affinity_scorer, k=5, p_tau=0.6)
    assert one.n_levels == two.n_levels
    for level in range(one.n_levels):
        assert same_partition(one.labels(level)[order], two.labels(level))


def test_exact_duplicates_by_the_hundred_are_not_fragmented():
    distinct, _ = make_identities(n_identities=20, size=1, seed=0)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(20), 250))
    found = cluster(distinct[labels], LabelScorer(labels), k=10)
    assert same_partition(found.labels(-1), labels)


@pytest.mark.parametrize("keep_links", [False, True])
def test_a_large_identity_that_communities_cut_is_joined_at_the_next_level(monkeypatch, keep_links):
    features, labels = make_identities(sizes=[600] + [10] * 30, dim=16, spread=0.4, seed=0)
    used = []
    for name in ("decode", "merge_by_links"):
        real = getattr(levels, name)

        def watch(*arguments, name=name, real=real):
            used.append(name if name == "merge_by_links" else arguments[-1])
            return real(*arguments)

        monkeypatch.setattr(levels, name, watch)
    found = cluster(
        features, LabelScorer(labels), k=10, decoder="leiden", p_tau=0.5, keep_links=keep_links
    )
    assert used[0] == "leiden"
    assert set(used[1:]) == {"merge_by_links" if keep_links else "contract"}
    assert len(np.unique(found.labels(0)[labels == 0])) > 10
    assert same_partition(found.labels(-1), labels)


@pytest.mark.parametrize(
    ("decoder", "uses_links"), [("leiden", True), ("contract", True), ("parents", False)]
)
def test_kept_links_merge_clusters_for_every_decoder_but_that_of_the_paper(
    monkeypatch, affinity_scorer, decoder, uses_links
):
    features, _ = make_identities(spread=0.7, seed=2)
    asked, real = [], levels.merge_by_links

    def watch(links, size, least):
        asked.append(least)
        return real(links, size, least)

    monkeypatch.setattr(levels, "merge_by_links", watch)
    rules = Rules(k=4, decoder=decoder, p_tau=0.8, p_tau_merge=0.3, keep_links=True)
    n_upper = len(list(walk_levels(features, affinity_scorer, rules))) - 1
    assert n_upper > 0
    assert asked == ([0.3] * n_upper if uses_links else [])


def test_levels_that_merge_by_links_only_merge_and_stop_when_nothing_is_left(affinity_scorer):
    features, _ = make_identities(spread=0.7, seed=2)
    rules = Rules(k=4, p_tau=0.8, decoder="leiden", p_tau_merge=0.3, keep_links=True)
    steps = list(walk_levels(features, affinity_scorer, rules))
    assert len(steps) > 1
    for step, following in pairwise(steps):
        assert len(step.peaks) == len(following.nodes) < len(step.nodes)
        assert (step.scores.density[step.parents.index] >= step.scores.density).all()
    assert steps[-1].parents.n_edges == 0


def test_the_graph_of_a_level_is_freed_before_the_next_search():
    features, labels = make_identities(spread=0.3, seed=0)
    truth, graphs, alive = LabelScorer(labels), [], []

    def score(graph, nodes):
        graphs.append(ref(graph))
        return truth(graph, nodes)

    def search(points, k, **_):
        alive.append(sum(graph() is not None for graph in graphs))
        return build_knn_graph(points, k)

    scorer = FunctionScorer(score)
    Hierarchy.of_steps(walk_levels(features, scorer, Rules(k=3), search=search))
    assert len(alive) > 1
    assert not any(alive)


def test_points_are_searched_at_the_default_recall_and_clusters_at_a_lower_one():
    features, labels = make_identities(spread=0.3, seed=0)
    told = []

    def search(points, k, **how):
        told.append(how)
        return build_knn_graph(points, k, **how)

    score = LabelScorer(labels)
    Hierarchy.of_steps(walk_levels(features, score, Rules(k=3), search=search))
    assert told[0] == {}
    assert len(told) > 1
    assert all(how == {"recall": UPPER_RECALL, "refine": False} for how in told[1:])
    assert 0.5 < UPPER_RECALL < 0.95


def test_a_large_level_that_merges_very_little_is_the_last(monkeypatch):
    features, labels = make_identities(spread=0.3, seed=0)
    score = LabelScorer(labels)
    whole = list(walk_levels(features, score, Rules(k=3)))
    assert len(whole) > 2
    monkeypatch.setattr(levels, "LARGE_LEVEL", 10)
    assert len(list(walk_levels(features, score, Rules(k=3)))) == len(whole)
    monkeypatch.setattr(levels, "LEAST_MERGED", 1.0)
    cut = list(walk_levels(features, score, Rules(k=3)))
    assert len(cut) == 2  # the points themselves are never the last
    monkeypatch.setattr(levels, "LARGE_LEVEL", 10**6)
    assert len(list(walk_levels(features, score, Rules(k=3)))) == len(whole)


def test_linked_clusters_are_given_to_the_search():
    features, labels = make_identities(spread=0.3, seed=0)
    told = []

    def search(points, k, **how):
        told.append((len(points), how))
        return build_knn_graph(points, k, **how)

    rules = Rules(k=3, keep_links=True)
    Hierarchy.of_steps(walk_levels(features, LabelScorer(labels), rules, search=search))
    assert told[0] == (len(features), {})
    assert len(told) > 1
    for n_nodes, how in told[1:]:
        assert set(how) == {"recall", "pairs"}
        assert how["pairs"].shape == (n_nodes, n_nodes)
    assert told[1][1]["pairs"].nnz
