import json

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from hilander.errors import LabelError
from hilander.metrics.report import format_scores, score_clustering, score_levels
from hilander.metrics.scores import ari, bcubed_scores, nmi, pairwise_scores, pure_share

KEYS = {
    "pairwise_f",
    "pairwise_precision",
    "pairwise_recall",
    "bcubed_f",
    "bcubed_precision",
    "bcubed_recall",
    "nmi",
    "ari",
    "n_clusters",
    "n_identities",
    "pure_share",
    "n_points",
}


class ThreeLevels:
    """A minimal hierarchy to score: each level merges the level before."""

    n_levels = 3

    def labels(self, level):
        return np.arange(40) // (2, 5, 10)[level]


@pytest.fixture
def partitions():
    rng = np.random.default_rng(5)
    true = rng.integers(0, 12, 100)
    return true, np.where(rng.random(100) < 0.7, true, rng.integers(12, 20, 100))


def test_scores_equal_the_single_metrics(partitions):
    scores = score_clustering(*partitions)
    assert scores.pairwise == pairwise_scores(*partitions)
    assert scores.bcubed == bcubed_scores(*partitions)
    assert scores.nmi == nmi(*partitions)
    assert scores.ari == ari(*partitions)
    assert scores.pure_share == pure_share(*partitions)
    assert (scores.n_clusters, scores.n_identities) == tuple(
        len(set(side.tolist())) for side in partitions[::-1]
    )
    assert scores.n_points == 100


def test_the_dictionary_is_flat_json_with_the_documented_keys(partitions):
    scores = score_clustering(*partitions)
    row = json.loads(json.dumps(scores.to_dict()))
    assert set(row) == KEYS
    assert row["pairwise_precision"] == scores.pairwise.precision
    assert row["pairwise_recall"] == scores.pairwise.recall
    assert row["pairwise_f"] == scores.pairwise.f
    assert row["bcubed_precision"] == scores.bcubed.precision
    assert row["bcubed_recall"] == scores.bcubed.recall
    assert row["bcubed_f"] == scores.bcubed.f
    for name in ("nmi", "ari", "n_clusters", "n_identities", "pure_share", "n_points"):
        assert row[name] == getattr(scores, name)


def test_every_level_is_scored_finest_first():
    true = [f"person {i // 10}" for i in range(40)]
    levels = score_levels(ThreeLevels(), true)
    assert [scores.n_clusters for scores in levels] == [20, 8, 4]
    assert [scores.bcubed.precision for scores in levels] == [1.0, 1.0, 1.0]
    assert levels[2].pairwise.f == 1.0
    assert levels[0].nmi == pytest.approx(normalized_mutual_info_score(true, np.arange(40) // 2))


def test_levels_of_other_points_are_refused():
    with pytest.raises(LabelError, match="true has 39 labels and pred has 40"):
        score_levels(ThreeLevels(), np.arange(39))


def test_the_table_is_aligned_and_has_a_line_for_each_row(partitions):
    true, pred = partitions
    table = format_scores(
        {"perfect": score_clustering(true, true), "a\nlong name": score_clustering(true, pred)}
    )
    lines = table.split("\n")
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["name", "Fp", "Fb", "NMI", "clusters", "/", "true"]
    assert lines[1].split() == ["perfect", "1.000", "1.000", "1.000", "12", "/", "12"]
    assert lines[2].startswith("a long name")
    assert f"{nmi(true, pred):.3f}" in lines[2]


def test_a_table_without_rows_is_its_header():
    assert format_scores({}).split()[0] == "name"
