import json
from collections import Counter
from dataclasses import replace

import pytest

from hilander.linkage.evidence import registry
from hilander.linkage.evidence.registry import (
    FEATURES,
    FORMER_SCHEMA,
    GROUPS,
    Feature,
    feature_names,
    features_of,
    schema_hash,
)
from hilander.linkage.storage import DESCRIPTION_FILE, PRETRAINED


def test_names_are_unique_within_their_group_and_groups_are_contiguous():
    assert max(Counter((one.group, one.name) for one in FEATURES).values()) == 1
    order = [GROUPS.index(one.group) for one in FEATURES]
    assert order == sorted(order)
    assert set(order) == set(range(len(GROUPS)))


def test_the_features_of_a_group_are_in_the_order_of_the_columns():
    assert features_of(*GROUPS) == FEATURES
    assert feature_names("edge") + feature_names("second stage") == feature_names(*GROUPS)
    assert feature_names("second stage", "edge") == feature_names(*GROUPS)
    assert feature_names() == ()


def test_the_pretrained_model_has_the_hash_of_the_registry():
    """A change of the registry makes stored weights unusable; it is never an accident."""
    description = json.loads((PRETRAINED / DESCRIPTION_FILE).read_text())
    assert description["network"]["edge_features"] in (schema_hash(), FORMER_SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda entries: entries[::-1],
        lambda entries: entries[1:],
        lambda entries: (*entries, Feature("new", "edge", "1", (1, 1), lambda e: 1)),
        lambda entries: (replace(entries[0], name="other"), *entries[1:]),
        lambda entries: (replace(entries[0], formula="other"), *entries[1:]),
        lambda entries: (replace(entries[0], group="second stage"), *entries[1:]),
    ],
    ids=["order", "one less", "one more", "name", "formula", "group"],
)
def test_the_hash_follows_from_order_names_groups_and_formulas(monkeypatch, change):
    before = schema_hash()
    monkeypatch.setattr(registry, "FEATURES", change(FEATURES))
    assert schema_hash() != before
