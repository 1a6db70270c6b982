"""The set context: measures of all edges of a set."""

import numpy as np
import pytest

from hilander.linkage.evidence.edge_features import compute_context, select_context_inputs
from hilander.linkage.evidence.registry import context_inputs, feature_names, features_of
from hilander.linkage.evidence.set_context import add_context

NAMES = feature_names("edge", "cluster size", "link", "relative size")
MEANS = ("crossing_linkage", "crossing_log_odds", "mutual", "shared")


def make_level(sizes, k=6, seed=0):
    """Features and probabilities of super-nodes whose edges have the given smaller ends."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(len(sizes), k, len(NAMES))).astype(np.float32)
    features[..., NAMES.index("smaller")] = np.log(sizes)[:, None]
    return features, rng.uniform(0.02, 0.98, size=(len(sizes), k)).astype(np.float32)


def describe(features, probability):
    found = compute_context(select_context_inputs(features), probability)
    entries = features_of("set context")
    assert found.shape == (len(entries),)
    assert found.dtype == np.float32
    return dict(zip((one.name for one in entries), found, strict=True))


def test_the_measures_are_those_of_the_edges_of_each_kind():
    sizes = np.repeat([1, 3, 5, 40], 10)
    features, probability = make_level(sizes)
    found = describe(features, probability)
    assert found["share_of_clusters"] == pytest.approx(np.log(121 / 242))
    for kind, chosen in (("clusters", sizes >= 5), ("singles", sizes == 1)):
        edges, p = features[chosen].reshape(-1, len(NAMES)), probability[chosen].ravel()
        assert found[f"probability_of_{kind}"] == pytest.approx(p.mean(), abs=1e-5)
        for quantile in (50, 75, 90, 95, 99):
            expected = np.percentile(np.log(p / (1 - p)), quantile)
            assert found[f"logit_{quantile}_of_{kind}"] == pytest.approx(expected, abs=1e-4)
        for name in MEANS:
            expected = edges[:, NAMES.index(name)].mean()
            assert found[f"{name}_of_{kind}"] == pytest.approx(expected, abs=1e-5)
    assert found["size_deviation_of_singles"] == 0
    assert found["size_deviation_of_clusters"] == pytest.approx(np.log(40 / 5) / 2, abs=1e-5)


def test_all_edges_are_described_in_place_of_too_few_of_a_kind():
    features, probability = make_level(np.repeat([1, 8], [4, 20]))
    found = describe(features, probability)
    assert found["probability_of_singles"] == pytest.approx(probability.mean(), abs=1e-5)
    assert found["probability_of_clusters"] == pytest.approx(probability[4:].mean(), abs=1e-5)


@pytest.mark.parametrize("sizes", [[1], [9, 9], [2, 3, 4]])
def test_the_smallest_levels_have_a_finite_context(sizes):
    found = describe(*make_level(np.array(sizes), k=1))
    assert all(np.isfinite(value) for value in found.values())


def test_the_order_of_the_nodes_does_not_matter():
    features, probability = make_level(np.repeat([1, 3, 8], 20))
    order = np.random.default_rng(1).permutation(len(probability))
    inputs = select_context_inputs(features)
    assert inputs.shape == (*probability.shape, len(context_inputs()))
    np.testing.assert_allclose(
        compute_context(inputs[order], probability[order]),
        compute_context(inputs, probability),
        atol=1e-5,
    )


def test_the_context_is_appended_to_the_features_of_every_edge():
    features, probability = make_level(np.repeat([1, 8], 10))
    context = compute_context(select_context_inputs(features), probability)
    shown = add_context(features, context)
    np.testing.assert_array_equal(shown[..., : len(NAMES)], features)
    assert (shown[..., len(NAMES) :] == context).all()
