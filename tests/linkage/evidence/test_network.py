import copy
import json

import numpy as np
import pytest
import torch

from hilander.arrays.rows import unit_rows
from hilander.errors import ModelError, SettingError
from hilander.graph import knn_graph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import cross_links
from hilander.graph.nodes import start_nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.hierarchy.pooling import merge_nodes
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence import network as evidence_network
from hilander.linkage.evidence.background import measure_background
from hilander.linkage.evidence.edge_features import (
    EdgeFeatures,
    add_second_stage,
    compute_edge_features,
)
from hilander.linkage.evidence.network import (
    EdgeClassifier,
    EvidenceNetwork,
    EvidenceSettings,
)
from hilander.linkage.evidence.registry import FEATURES, features_of
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import make_evidence_network
from hilander.linkage.storage import StoredNetwork, build_network, read_network, write_network
from hilander.synthetic.identities import make_identities

N_EDGE, N_SECOND_STAGE = len(features_of("edge")), len(features_of("second stage"))


@pytest.fixture(scope="module")
def network():
    return make_evidence_network(EvidenceSettings(8), seed=0)


@pytest.fixture(scope="module")
def points():
    return make_identities(n_identities=10, size=6, dim=8, spread=0.6, seed=0)[0]


def predict_at_once(network, graph, nodes, background):
    """Both stages on the features of all edges, without blocks."""
    features = compute_edge_features(graph, nodes, background)
    first, second = network.classifiers()
    return second.predict(add_second_stage(graph, features, first.predict(features)))


def bound(network, points):
    """A scorer that is ready for a set of points."""
    scorer = EvidenceScorer(network, "cpu")
    scorer.bind_points(points)
    return scorer


def super_level(points, k=4):
    labels = np.arange(len(points)) // 3
    graph = build_knn_graph(points, k)
    half = np.full(graph.affinity.shape, 0.5, dtype=np.float32)
    links = cross_links(graph, half, labels, labels.max() + 1)
    nodes = merge_nodes(start_nodes(points), labels, np.arange(0, len(points), 3), links)
    return build_knn_graph(unit_rows(nodes.average), k), nodes


def test_every_classifier_has_the_width_of_its_features(network):
    first, second = network.classifiers()
    for classifier, width in ((first, N_EDGE), (second, N_EDGE + N_SECOND_STAGE)):
        assert classifier.layers[0].weight.shape == (5, width, 8)
        assert len(classifier.centre) == width
    assert len(FEATURES) == N_EDGE + N_SECOND_STAGE


def test_a_classifier_standardises_its_features():
    classifier = EdgeClassifier(3, EvidenceSettings(4, 2))
    centre, scale = torch.tensor([1.0, -2, 0]), torch.tensor([0.5, 3, 10])
    rng = np.random.default_rng(0)
    standard = torch.from_numpy(rng.normal(size=(20, 3)).astype(np.float32))
    before = classifier(standard)
    classifier.set_scaling(centre, scale)
    torch.testing.assert_close(classifier(standard * scale + centre), before, atol=1e-4, rtol=1e-4)
    assert torch.equal(classifier.state_dict()["centre"], centre)
    assert torch.equal(classifier.state_dict()["scale"], scale)


def test_a_feature_far_from_its_mean_is_clipped():
    classifier = EdgeClassifier(2, EvidenceSettings(4, 2))
    far, farther = torch.tensor([[10.0, 0.0]]), torch.tensor([[1e20, 0.0]])
    assert torch.equal(classifier(far), classifier(farther))
    assert not torch.equal(classifier(far), classifier(-far))


def test_a_classifier_gives_the_same_in_blocks_of_edges(monkeypatch):
    classifier = EdgeClassifier(3, EvidenceSettings(4, 2))
    features = np.random.default_rng(1).normal(size=(11, 5, 3)).astype(np.float32)
    whole = classifier.predict(features)
    assert whole.shape == (11, 5)
    assert ((whole > 0) & (whole < 1)).all()
    monkeypatch.setattr(evidence_network, "_EDGE_BLOCK", 7)
    np.testing.assert_allclose(classifier.predict(features), whole, atol=1e-6)


def test_the_logit_is_the_mean_of_members_that_differ():
    classifier = EdgeClassifier(3, EvidenceSettings(4, 3))
    features = torch.from_numpy(np.random.default_rng(3).normal(size=(9, 3)).astype(np.float32))
    each = classifier.member_logits(features)
    assert each.shape == (3, 9)
    torch.testing.assert_close(classifier(features), each.mean(dim=0))
    assert (each[0] - each[1]).abs().max() > 1e-3
    # Each member is a separate network.
    by_hand = features
    for layer in (classifier.layers[0], classifier.layers[2]):
        by_hand = torch.nn.functional.gelu(by_hand @ layer.weight[1] + layer.bias[1])
    by_hand = by_hand @ classifier.last.weight[1] + classifier.last.bias[1]
    torch.testing.assert_close(each[1], by_hand.squeeze(-1), atol=1e-5, rtol=1e-5)


def test_members_score_their_own_edges_as_they_score_all():
    classifier = EdgeClassifier(3, EvidenceSettings(4, 2))
    own = torch.from_numpy(np.random.default_rng(4).normal(size=(2, 9, 3)).astype(np.float32))
    found = classifier.member_logits(own)
    assert found.shape == (2, 9)
    for member in range(2):
        torch.testing.assert_close(found[member], classifier.member_logits(own[member])[member])


def reject_all(classifier):
    """Set the last layer so that every edge has a probability near 0."""
    with torch.no_grad():
        classifier.last.weight.zero_()
        classifier.last.bias.fill_(-20)


def test_the_second_stage_sees_the_probabilities_of_the_first(network, points):
    graph = build_knn_graph(points, 4)
    features = compute_edge_features(graph, start_nodes(points), measure_background(points))
    first, second = copy.deepcopy(network).classifiers()
    both = add_second_stage(graph, features, first.predict(features))
    assert both.shape == (*features.shape[:2], features.shape[2] + N_SECOND_STAGE)
    np.testing.assert_array_equal(both[..., : features.shape[2]], features)
    before = second.predict(both)
    reject_all(first)  # another first stage gives other features to the second
    changed = add_second_stage(graph, features, first.predict(features))
    assert np.abs(second.predict(changed) - before).max() > 1e-3


@pytest.mark.parametrize("numbers", [1, 3_000, 10**6])
def test_a_network_gives_the_same_in_blocks_of_nodes(network, points, monkeypatch, numbers):
    background = measure_background(points)
    graph, nodes = build_knn_graph(points, 4), start_nodes(points)
    whole = predict_at_once(network, graph, nodes, background)
    monkeypatch.setattr(knn_graph, "_CACHED_NUMBERS", numbers)
    found = network.predict(graph, EdgeFeatures(graph, nodes, background))
    np.testing.assert_allclose(found, whole, atol=1e-5)


def test_points_in_a_mapped_file_of_half_precision_are_scored(network, points, tmp_path):
    half = points.astype(np.float16)
    np.save(tmp_path / "points.npy", half)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    graph = build_knn_graph(unit_rows(half.astype(np.float32)), 4)
    plain, found = (
        bound(network, each)(graph, start_nodes(each)).linkage
        for each in (half.astype(np.float32), mapped)
    )
    np.testing.assert_allclose(found, plain, atol=1e-5)


def test_a_scorer_gives_linkage_and_the_density_that_follows(network, points):
    predict = bound(network, points)
    for graph, nodes in ((build_knn_graph(points, 4), start_nodes(points)), super_level(points)):
        scores = predict(graph, nodes)
        assert scores.linkage.shape == graph.affinity.shape
        assert scores.linkage.dtype == np.float32
        expected = (graph.affinity * (2 * scores.linkage - 1)).mean(axis=1)
        np.testing.assert_allclose(scores.density, expected, atol=1e-6)


def test_the_linkage_of_super_nodes_follows_from_the_links_of_their_points_alone(network, points):
    graph, nodes = super_level(points)
    found = bound(network, points)(graph, nodes).linkage
    pairs = LinkedPairs.of_links(nodes.links, nodes.size)
    estimates = np.zeros((len(nodes), len(nodes)), dtype=np.float32)
    estimates[pairs.low, pairs.high] = estimates[pairs.high, pairs.low] = estimate_by_links(pairs)
    expected = np.take_along_axis(estimates, graph.neighbours, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert 0 < found.max() < 1
    other = make_evidence_network(EvidenceSettings(8), seed=1)
    np.testing.assert_array_equal(bound(other, points)(graph, nodes).linkage, found)


def test_other_points_have_their_own_background(network, points):
    other = make_identities(n_identities=10, size=6, dim=8, spread=0.6, seed=5)[0]
    graph, nodes = build_knn_graph(other, 4), start_nodes(other)
    used = bound(network, points)
    used.bind_points(other)
    fresh = bound(network, other)
    np.testing.assert_array_equal(used(graph, nodes).linkage, fresh(graph, nodes).linkage)


def test_equal_points_have_a_linkage_of_1(network, points):
    twice = np.concatenate([points, points])
    graph = build_knn_graph(twice, 4)
    linkage = bound(network, twice)(graph, start_nodes(twice)).linkage
    equal = graph.neighbours % len(points) == np.arange(len(twice))[:, None] % len(points)
    assert equal.any(axis=1).all()
    assert (linkage[equal] == 1).all()
    assert (linkage[~equal] < 1).all()


@pytest.fixture
def rejecting(points):
    """A network whose part for sets as small as this one rejects every edge."""
    made = make_evidence_network(EvidenceSettings(8, small_set_points=len(points)), seed=0)
    reject_all(made.small_set.classifiers()[1])
    return made


def test_small_sets_have_a_network_of_their_own(rejecting, points):
    more = np.concatenate([points, -points[:1]])
    for features, rejects in ((points, True), (more, False), (points, True)):
        predict = bound(rejecting, features)
        linkage = predict(build_knn_graph(features, 4), start_nodes(features)).linkage
        assert (linkage.max() < 0.01) == rejects
    assert rejecting.small_set.settings == EvidenceSettings(8)


def test_the_network_is_chosen_when_points_are_bound(rejecting, points):
    some = points[:30]
    level = build_knn_graph(some, 4), start_nodes(some)
    predict = bound(rejecting, points)
    assert predict(*level).linkage.max() < 0.01
    predict.bind_points(np.concatenate([points, points]))
    assert predict(*level).linkage.max() > 0.01


def test_without_a_network_for_small_sets_the_network_scores_them_itself(network):
    assert network.small_set is None
    assert network.for_size(1) is network


# On disk.


def test_the_network_for_small_sets_is_equal_after_save_and_load(rejecting, tmp_path):
    write_network(StoredNetwork(rejecting, {}, {}), tmp_path)
    again = read_network(tmp_path).network
    assert again.settings == rejecting.settings
    ours, theirs = rejecting.small_set.state_dict(), again.small_set.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_save_then_load_is_bit_equal(network, points, tmp_path):
    first, _ = network.classifiers()
    first.set_scaling(torch.rand(len(first.centre)), torch.rand(len(first.scale)) + 0.5)
    write_network(StoredNetwork(network, {}, {}), tmp_path)
    again = read_network(tmp_path).network
    assert isinstance(again, EvidenceNetwork)
    assert again.settings == network.settings
    ours, theirs = network.state_dict(), again.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    graph, nodes = build_knn_graph(points, 4), start_nodes(points)
    one, two = (bound(each, points)(graph, nodes) for each in (network, again))
    np.testing.assert_array_equal(one.linkage, two.linkage)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "oracle", "hidden": 8}, "kind 'oracle', this version knows lander and evidence"),
        ({"hidden": 8}, "kind None"),
        ({"kind": "evidence", "hidden": 8, "dim": 3}, "not of this version"),
        ({"kind": "evidence"}, "not of this version"),
    ],
)
def test_a_network_of_another_kind_is_refused(settings, message):
    with pytest.raises(ModelError, match=message):
        build_network(settings)


@pytest.mark.parametrize("hidden", [0, -1, 2.5, None, "8"])
def test_an_invalid_width_is_refused(hidden):
    with pytest.raises(SettingError, match="hidden="):
        EvidenceSettings(hidden)


def test_a_numpy_width_becomes_a_python_integer():
    assert '"hidden": 8, ' in json.dumps(EvidenceSettings(np.int64(8)).to_dict())


def test_settings_of_earlier_versions_are_read_and_invalid_ones_refused():
    assert EvidenceSettings.from_dict({"hidden": 8, "members": 2}) == EvidenceSettings(8, 2)
    dropped = {"beside_others": False, "relative_sizes": True, "in_context": False}
    given = {"hidden": 8, "members": 2, "few_points": 9, "set_context": True, **dropped}
    assert EvidenceSettings.from_dict(given) == EvidenceSettings(8, 2, small_set_points=9)
    inside = {"hidden": 8, "members": 2, "prior": given, "own_weight": 0.5}
    assert EvidenceSettings.from_dict(inside).prior == EvidenceSettings(8, 2, small_set_points=9)
    with pytest.raises(SettingError, match="small_set_points=-1 must be a whole number >= 0"):
        EvidenceSettings(small_set_points=-1)


def test_probabilities_do_not_depend_on_the_number_of_threads_to_the_last_bit():
    rng, before = np.random.default_rng(0), torch.get_num_threads()
    torch.manual_seed(0)
    classifiers = [
        EdgeClassifier(width, EvidenceSettings(hidden=16)).eval() for width in (24, 35, 39, 50)
    ]
    try:
        for classifier in classifiers:
            for n_edges in (*range(1, 40), 1_000, 9_000):
                features = rng.standard_normal(
                    (n_edges, 1, len(classifier.centre)), dtype=np.float32
                )
                found = []
                for threads in (1, 2):
                    torch.set_num_threads(threads)
                    found.append(classifier.predict(features))
                    assert torch.get_num_threads() == threads
                np.testing.assert_array_equal(*found)
    finally:
        torch.set_num_threads(before)
