"""Examples that the edge classifiers are trained on."""

from dataclasses import replace

import numpy as np

from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import make_evidence_network
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import examples
from hilander.training.evidence.examples import (
    CLUSTERING_VARIANTS,
    majority_identity,
    make_cluster_examples,
    make_point_examples,
)
from hilander.training.evidence.plan import EvidencePlan

RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)


def test_examples_of_points_say_which_edges_join_one_identity(labelled):
    episode = Episode(*labelled, 0.3)
    found = make_point_examples(episode, 6)
    assert found.examples.weight == 0.3
    assert found.examples.edge_features.shape[:2] == found.examples.same.shape == (160, 6)
    for node in range(160):
        for place, other in enumerate(found.graph.neighbours[node]):
            same = labelled[1][node] == labelled[1][other]
            assert found.examples.same[node, place] == same


def test_a_cluster_has_the_identity_of_most_of_its_points():
    features, labels = make_identities(n_identities=6, size=12, dim=6, spread=1.0, seed=0)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(72) < 0.2, rng.integers(6, size=72), labels)
    step = next(walk_levels(features, LabelScorer(noisy), Rules(k=5)))
    found = majority_identity(step, labels)
    mixed = 0
    for tree, identity in enumerate(found):
        members = labels[step.labels == tree]
        mixed += len(set(members.tolist())) > 1
        assert (members == identity).sum() == np.bincount(members).max()
    assert mixed


def oracle(labels):
    """Predicts edges of points: almost all correctly, a few with a probability of 0.6."""

    def predict(graph, evidence):
        if evidence.super_nodes:
            return np.full(graph.affinity.shape, 0.1, dtype=np.float32)
        same = labels[graph.neighbours] == labels[:, None]
        linkage = np.where(same, 0.95, 0.02).astype(np.float32)
        linkage[::5, 0] = 0.6
        return linkage

    return predict


def test_clusters_are_made_by_the_network_with_each_variant(labelled, monkeypatch):
    episode, graph = Episode(*labelled), build_knn_graph(labelled[0], 6)
    network = make_evidence_network(EvidenceSettings(hidden=8), seed=0)
    network.predict = oracle(labelled[1])
    variants = []

    def watch(features, score, rules, **rest):
        variants.append((rules.decoder, rules.p_tau))
        return walk_levels(features, score, rules, **rest)

    monkeypatch.setattr(examples, "walk_levels", watch)
    for decoder in ("contract", "leiden"):  # the examples do not depend on the decoder of inference
        rules = replace(RULES, decoder=decoder)
        plan = EvidencePlan(rules=rules, device="cpu")
        graph_examples = list(make_cluster_examples(network, [(episode, graph)], plan))
        assert tuple(variants) == CLUSTERING_VARIANTS
        variants.clear()
        assert len(graph_examples) == len(CLUSTERING_VARIANTS)
        for one in graph_examples:
            assert 20 <= len(one.graph.neighbours) < 160
            assert one.examples.edge_features.shape[:2] == one.examples.same.shape
            assert one.examples.edge_features.shape[-1] > 24


def test_fragments_of_a_large_identity_are_examples_of_merges():
    features, labels = make_identities(sizes=[500] + [8] * 20, dim=16, spread=0.35, seed=0)
    episode, graph = Episode(features, labels), build_knn_graph(features, 6)
    network = make_evidence_network(EvidenceSettings(hidden=8), seed=0)
    network.predict = oracle(labels)
    graph_examples = list(
        make_cluster_examples(network, [(episode, graph)], EvidencePlan(rules=RULES, device="cpu"))
    )
    pairs = {
        decoder: sum(
            one.examples.same.sum()
            for one, variant in zip(graph_examples, CLUSTERING_VARIANTS, strict=True)
            if variant[0] == decoder
        )
        for decoder in ("contract", "leiden")
    }
    assert pairs["leiden"] > 20
    assert pairs["leiden"] > 2 * pairs["contract"]
