import json
from collections import Counter
from dataclasses import replace

import pytest

from hilander.linkage.evidence import registry
from hilander.linkage.evidence.registry import (
    FEATURES,
    GROUPS,
    Feature,
    context_inputs,
    feature_names,
    first_stage_groups,
    n_edge_features,
    schema_hash,
)
from hilander.linkage.storage import DESCRIPTION_FILE, PRETRAINED


def test_names_are_unique_within_their_group_and_groups_are_contiguous():
    assert max(Counter((one.group, one.name) for one in FEATURES).values()) == 1
    order = [GROUPS.index(one.group) for one in FEATURES]
    assert order == sorted(order)
    assert set(order) == set(range(len(GROUPS)))


def test_super_nodes_have_the_features_of_points_first():
    points = feature_names(*first_stage_groups(super_nodes=False, relative_sizes=True))
    clusters = feature_names(*first_stage_groups(super_nodes=True))
    relative = feature_names(*first_stage_groups(super_nodes=True, relative_sizes=True))
    assert clusters[: len(points)] == points
    assert relative[: len(clusters)] == clusters
    assert n_edge_features(super_nodes=True, relative_sizes=True) == len(relative) > len(clusters)


def test_the_set_context_reads_features_of_super_nodes():
    assert set(context_inputs()) <= set(feature_names(*first_stage_groups(super_nodes=True)))
    assert len(set(context_inputs())) == len(context_inputs())


def test_the_pretrained_model_has_the_hash_of_the_registry():
    """A change of the registry makes stored weights unusable; it is never an accident."""
    description = json.loads((PRETRAINED / DESCRIPTION_FILE).read_text())
    assert description["network"]["edge_features"] == schema_hash()


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries[::-1],
        lambda entries: entries[1:],
        lambda entries: (*entries, Feature("new", "edge", "1", (1, 1), lambda e: 1)),
        lambda entries: (replace(entries[0], name="other"), *entries[1:]),
        lambda entries: (replace(entries[0], formula="other"), *entries[1:]),
        lambda entries: (replace(entries[0], group="link"), *entries[1:]),
    ],
    ids=["order", "one less", "one more", "name", "formula", "group"],
)
def test_the_hash_follows_from_order_names_groups_and_formulas(monkeypatch, change):
    before = schema_hash()
    monkeypatch.setattr(registry, "FEATURES", change(FEATURES))
    assert schema_hash() != before
