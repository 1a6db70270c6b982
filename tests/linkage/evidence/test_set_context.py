"""The context of super-nodes: numbers of all edges of a set."""

import numpy as np
import pytest

from hilander.linkage.evidence.cluster_features import LINK_EVIDENCE, SET_EVIDENCE, SIZE_EVIDENCE
from hilander.linkage.evidence.edge_features import EDGE_EVIDENCE
from hilander.linkage.evidence.set_context import (
    CONTEXT,
    N_CONTEXT_INPUTS,
    add_context,
    describe_context,
    take_context_inputs,
)

NAMES = EDGE_EVIDENCE + SIZE_EVIDENCE + LINK_EVIDENCE + SET_EVIDENCE
MEANS = ("crossing_linkage", "crossing_log_odds", "mutual", "shared")


def make_level(sizes, k=6, seed=0):
    """Evidence and first guess of super-nodes whose edges have the given smaller ends."""
    rng = np.random.default_rng(seed)
    evidence = rng.normal(size=(len(sizes), k, len(NAMES))).astype(np.float32)
    evidence[..., NAMES.index("smaller")] = np.log(sizes)[:, None]
    return evidence, rng.uniform(0.02, 0.98, size=(len(sizes), k)).astype(np.float32)


def describe(evidence, guess):
    found = describe_context(take_context_inputs(evidence), guess)
    assert found.shape == (len(CONTEXT),)
    assert found.dtype == np.float32
    return dict(zip(CONTEXT, found, strict=True))


def test_the_numbers_are_those_of_the_edges_of_each_kind():
    sizes = np.repeat([1, 3, 5, 40], 10)
    evidence, guess = make_level(sizes)
    found = describe(evidence, guess)
    assert found["share_of_clusters"] == pytest.approx(np.log(121 / 242))
    for kind, chosen in (("clusters", sizes >= 5), ("singles", sizes == 1)):
        edges, p = evidence[chosen].reshape(-1, len(NAMES)), guess[chosen].ravel()
        assert found[f"guess_of_{kind}"] == pytest.approx(p.mean(), abs=1e-5)
        for quantile in (50, 75, 90, 95, 99):
            expected = np.percentile(np.log(p / (1 - p)), quantile)
            assert found[f"logit_{quantile}_of_{kind}"] == pytest.approx(expected, abs=1e-4)
        for name in MEANS:
            expected = edges[:, NAMES.index(name)].mean()
            assert found[f"{name}_of_{kind}"] == pytest.approx(expected, abs=1e-5)
    assert found["size_spread_of_singles"] == 0
    assert found["size_spread_of_clusters"] == pytest.approx(np.log(40 / 5) / 2, abs=1e-5)


def test_too_few_edges_of_a_kind_are_no_context_and_all_stand_in():
    evidence, guess = make_level(np.repeat([1, 8], [4, 20]))
    found = describe(evidence, guess)
    assert found["guess_of_singles"] == pytest.approx(guess.mean(), abs=1e-5)
    assert found["guess_of_clusters"] == pytest.approx(guess[4:].mean(), abs=1e-5)


@pytest.mark.parametrize("sizes", [[1], [9, 9], [2, 3, 4]])
def test_the_smallest_levels_have_a_context(sizes):
    found = describe(*make_level(np.array(sizes), k=1))
    assert all(np.isfinite(value) for value in found.values())


def test_the_order_of_the_nodes_does_not_matter():
    evidence, guess = make_level(np.repeat([1, 3, 8], 20))
    order = np.random.default_rng(1).permutation(len(guess))
    context_inputs = take_context_inputs(evidence)
    assert context_inputs.shape == (*guess.shape, N_CONTEXT_INPUTS)
    np.testing.assert_allclose(
        describe_context(context_inputs[order], guess[order]),
        describe_context(context_inputs, guess),
        atol=1e-5,
    )


def test_every_edge_is_shown_the_same_context_after_its_own_evidence():
    evidence, guess = make_level(np.repeat([1, 8], 10))
    context = describe_context(take_context_inputs(evidence), guess)
    shown = add_context(evidence, context)
    np.testing.assert_array_equal(shown[..., : len(NAMES)], evidence)
    assert (shown[..., len(NAMES) :] == context).all()
