import numpy as np
import pytest

from hilander.data import make_identities
from hilander.data.episodes import Episode
from hilander.graph import build_knn_graph, start_nodes
from hilander.link_scaling import learn_link_scaling, scale_links
from hilander.model.evidence_learning import make_evidence_network
from hilander.model.evidence_network import EvidencePredictor, EvidenceSettings
from hilander.partition import decode, label_trees
from hilander.validation.calibration import Scaling, measure_reliability, same_identity


def scene(seed):
    features, labels = make_identities(n_identities=12, size=10, dim=8, spread=0.5, seed=seed)
    return Episode(features.astype(np.float32), labels), build_knn_graph(features, 6)


def judge(network, episode, graph):
    return EvidencePredictor(network, "cpu")(graph, start_nodes(episode.features))


def test_a_folded_scaling_gives_the_scaled_linkage():
    episode, graph = scene(0)
    network = make_evidence_network(EvidenceSettings(8), 0).eval()
    before = judge(network, episode, graph).linkage
    scaling = Scaling(1.7, 0.6)
    scale_links(network, scaling)
    after = judge(network, episode, graph).linkage
    assert np.abs(after - before).max() > 0.05
    np.testing.assert_allclose(after, scaling.apply(before), atol=1e-5)


def test_with_p_tau_scaled_too_the_first_clusters_stay():
    episode, graph = scene(1)
    network = make_evidence_network(EvidenceSettings(8), 3).eval()
    before = judge(network, episode, graph)
    p_tau = float(np.median(before.linkage))
    scaling = Scaling(0.6, -0.4)
    scale_links(network, scaling)
    after = judge(network, episode, graph)
    moved = float(scaling.apply(np.array(p_tau)))
    one = label_trees(decode(graph, before, p_tau, "contract").index)[0]
    two = label_trees(decode(graph, after, moved, "contract").index)[0]
    assert 1 < len(np.unique(one)) < len(one)
    assert len(np.unique(np.stack([one, two]), axis=1).T) == len(np.unique(one))


def test_what_is_learnt_mends_the_linkage_of_held_out_identities():
    pairs = [scene(seed) for seed in (2, 3)]
    network = make_evidence_network(EvidenceSettings(8), 1).eval()
    episodes, graphs = zip(*pairs, strict=True)
    scorers = [EvidencePredictor(network, "cpu") for _ in pairs]
    scaling = learn_link_scaling(episodes, graphs, scorers)

    def brier():
        told = np.concatenate([judge(network, *pair).linkage.ravel() for pair in pairs])
        true = [same_identity(graph.neighbours, one.labels).ravel() for one, graph in pairs]
        return measure_reliability(told, np.concatenate(true)).brier

    before = brier()
    scale_links(network, scaling)
    assert brier() < before - 0.01


def test_without_episodes_nothing_is_scaled():
    assert learn_link_scaling([], [], []) == Scaling()
    with pytest.raises(ValueError, match="zip"):
        learn_link_scaling([scene(0)[0]], [], [])
