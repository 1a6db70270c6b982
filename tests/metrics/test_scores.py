import itertools
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import pair_confusion_matrix

from hilander.errors import LabelError, SettingError
from hilander.metrics.scores import (
    PrecisionRecall,
    ari,
    bcubed_f,
    bcubed_scores,
    n_clusters,
    nmi,
    pairwise_f,
    pairwise_scores,
    pure_share,
    purity,
)

METRICS = [pairwise_f, bcubed_f, nmi, ari, pure_share, purity]
SYMMETRIC = [pairwise_f, bcubed_f, nmi, ari, pure_share]
SEEDS = range(40)


def random_partitions(seed):
    """Two small random partitions, from all-singletons to one group, related or not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    true = rng.integers(0, rng.integers(1, n + 1), n)
    pred = rng.integers(0, rng.integers(1, n + 1), n)
    kept = rng.random(n) < rng.random()
    return true, np.where(kept, true + n, pred)


def pairwise_by_loop(true, pred):
    both = together = belonging = 0
    for i, j in itertools.combinations(range(len(true)), 2):
        together += pred[i] == pred[j]
        belonging += true[i] == true[j]
        both += pred[i] == pred[j] and true[i] == true[j]
    if together == 0 and belonging == 0:
        return 1.0, 1.0
    return (both / together if together else 0.0), (both / belonging if belonging else 0.0)


def bcubed_by_loop(true, pred):
    n = len(true)
    precision = recall = 0.0
    for i in range(n):
        shared = sum(pred[i] == pred[j] and true[i] == true[j] for j in range(n))
        precision += shared / sum(pred[i] == pred[j] for j in range(n))
        recall += shared / sum(true[i] == true[j] for j in range(n))
    return precision / n, recall / n


def harmonic(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_pairwise_equals_counting_every_pair(seed):
    true, pred = random_partitions(seed)
    precision, recall = pairwise_by_loop(true, pred)
    scores = pairwise_scores(true, pred)
    assert (scores.precision, scores.recall) == pytest.approx((precision, recall))
    assert pairwise_f(true, pred) == pytest.approx(harmonic(precision, recall))


@pytest.mark.parametrize("seed", SEEDS)
def test_bcubed_equals_the_mean_over_points(seed):
    true, pred = random_partitions(seed)
    precision, recall = bcubed_by_loop(true, pred)
    scores = bcubed_scores(true, pred)
    assert (scores.precision, scores.recall) == pytest.approx((precision, recall))
    assert bcubed_f(true, pred) == pytest.approx(harmonic(precision, recall))


@pytest.mark.parametrize("seed", SEEDS)
def test_nmi_and_ari_and_pairs_equal_those_of_scikit_learn(seed):
    true, pred = random_partitions(seed)
    assert nmi(true, pred) == pytest.approx(normalized_mutual_info_score(true, pred), abs=1e-12)
    assert ari(true, pred) == pytest.approx(adjusted_rand_score(true, pred), abs=1e-12)
    (_, merged), (split, shared) = pair_confusion_matrix(true, pred)
    if shared:
        scores = pairwise_scores(true, pred)
        assert scores.precision == pytest.approx(shared / (shared + merged))
        assert scores.recall == pytest.approx(shared / (shared + split))


@pytest.mark.parametrize("seed", SEEDS)
def test_pure_share_and_purity_equal_their_definitions(seed):
    true, pred = random_partitions(seed)
    correct = right = 0
    for cluster in set(pred.tolist()):
        members = set(np.flatnonzero(pred == cluster).tolist())
        identities = [set(np.flatnonzero(true == t).tolist()) for t in set(true.tolist())]
        correct += len(members) if members in identities else 0
        right += max(len(members & identity) for identity in identities)
    assert pure_share(true, pred) == pytest.approx(correct / len(true))
    assert purity(true, pred) == pytest.approx(right / len(true))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_points_and_the_names_of_labels_have_no_effect(metric, seed):
    true, pred = random_partitions(seed)
    rng = np.random.default_rng(seed + 1000)
    order = rng.permutation(len(true))
    names = rng.permutation(1000)
    expected = metric(true, pred)
    assert metric(true[order], pred[order]) == pytest.approx(expected, abs=1e-12)
    assert metric(names[true], -names[pred]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_strings_objects_and_lists_score_as_integers(metric):
    true, pred = random_partitions(3)
    expected = metric(true, pred)
    words = [f"person {t}" for t in true]
    assert metric(words, pred.tolist()) == pytest.approx(expected)
    assert metric(np.array(words), pred) == pytest.approx(expected)
    assert metric(np.array(words, dtype=object), pred.astype(np.int16)) == pytest.approx(expected)


def test_labels_of_different_types_are_different():
    mixed = [1, "1", 1, "1", "b"]
    assert n_clusters(mixed) == 3
    assert pairwise_f(mixed, [0, 1, 0, 1, 2]) == 1.0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(10))
def test_the_same_partition_scores_exactly_one(metric, seed):
    rng = np.random.default_rng(seed)
    true = rng.zipf(1.5, 4000) % 700  # uneven sizes, so that sums are rounded
    assert metric(true, rng.permutation(700)[true]) == 1.0


@pytest.mark.parametrize("seed", range(10))
def test_swapping_sides_swaps_precision_and_recall(seed):
    true, pred = random_partitions(seed)
    for scores in (pairwise_scores, bcubed_scores):
        there, back = scores(true, pred), scores(pred, true)
        assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))


@pytest.mark.parametrize("metric", SYMMETRIC)
@pytest.mark.parametrize("seed", range(10))
def test_swapping_sides_changes_no_symmetric_metric(metric, seed):
    true, pred = random_partitions(seed)
    assert metric(true, pred) == pytest.approx(metric(pred, true), abs=1e-12)


def test_singletons_on_both_sides_are_perfect_and_on_one_side_score_no_pair():
    singletons, one = np.arange(6), np.zeros(6, dtype=int)
    assert pairwise_scores(singletons, singletons) == PrecisionRecall(1.0, 1.0)
    assert pairwise_scores(one, singletons) == PrecisionRecall(0.0, 0.0)
    assert pairwise_scores(singletons, one) == PrecisionRecall(0.0, 0.0)
    assert pairwise_f(one, singletons) == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_one_point_scores_one(metric):
    assert metric(["anna"], [7]) == 1.0


def test_one_cluster_of_all_points_has_no_information():
    true = np.repeat(np.arange(4), 5)
    everything = np.zeros(20, dtype=int)
    assert nmi(true, everything) == pytest.approx(0.0, abs=1e-12)
    assert ari(true, everything) == 0.0
    assert bcubed_scores(true, everything) == PrecisionRecall(0.25, 1.0)


def test_a_million_points_in_one_cluster_do_not_overflow():
    n = 1_000_000
    true = np.repeat([0, 1], n // 2)
    scores = pairwise_scores(true, np.zeros(n, dtype=np.int32))
    assert scores.precision == pytest.approx(0.5, abs=1e-5)
    assert scores.recall == 1.0
    nearly = true.copy()
    nearly[0] = 1
    assert ari(true, nearly) == pytest.approx(1.0, abs=1e-5)
    assert ari(true, nearly) < 1.0


def test_a_hundred_thousand_identities_and_clusters_fit_in_memory():
    n = 200_000
    true = np.arange(n) // 2
    pred = (np.arange(n) + 1) // 2  # every pair is broken and every neighbour wrongly joined
    assert pairwise_f(true, pred) == 0.0
    assert bcubed_f(true, pred) == pytest.approx(0.5, abs=1e-4)
    assert 0.9 < nmi(true, pred) < 1.0
    assert n_clusters(true) == 100_000
    assert pure_share(true, true) == 1.0


@pytest.mark.parametrize("metric", METRICS)
def test_labels_of_another_length_or_none_are_refused(metric):
    with pytest.raises(LabelError, match=r"true has 3 labels and pred has 2"):
        metric([1, 2, 3], [1, 2])
    with pytest.raises(LabelError, match="true: got no labels"):
        metric([], [])
    with pytest.raises(LabelError, match="pred: got no labels"):
        metric([1], np.array([]))
    with pytest.raises(LabelError, match="pred is None"):
        metric([1], None)
    with pytest.raises(LabelError, match="true: label of row 1 is missing"):
        metric([1.0, float("nan")], [1, 1])


def test_shares_outside_zero_to_one_are_refused():
    with pytest.raises(SettingError, match=r"recall=1\.5"):
        PrecisionRecall(0.5, 1.5)


def test_metrics_import_neither_torch_nor_matplotlib():
    code = (
        "import sys, hilander.metrics, hilander.metrics.plots; "
        "print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
