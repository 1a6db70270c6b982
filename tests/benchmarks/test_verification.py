import itertools

import numpy as np
import pytest

from benchmarks.verification import fnir_at, fnmr_at, score_verification, split_gallery
from hilander.errors import LabelError, SettingError
from hilander.synthetic.identities import make_identities


def fnmr_by_definition(features: np.ndarray, labels: np.ndarray, fmr: float) -> float:
    pairs = list(itertools.combinations(range(len(labels)), 2))
    cosine = np.array([float(features[i] @ features[j]) for i, j in pairs])
    same = np.array([labels[i] == labels[j] for i, j in pairs])
    rejected = [
        np.mean(cosine[same] < threshold)
        for threshold in np.sort(np.append(cosine, 2.0))
        if np.mean(cosine[~same] >= threshold) <= fmr
    ]
    return min(rejected)


def fnir_by_definition(features, labels, fpir, gallery, known, between_cosine) -> float:
    def best(probe: int) -> tuple[float, int]:
        return max((float(features[probe] @ features[g]), int(labels[g])) for g in gallery)

    thresholds = sorted({best(p)[0] for p in [*known, *between_cosine]} | {2.0})
    losses = []
    for threshold in thresholds:
        if np.mean([best(p)[0] >= threshold for p in between_cosine]) <= fpir:
            found = [best(p)[0] >= threshold and best(p)[1] == labels[p] for p in known]
            losses.append(1 - np.mean(found))
    return min(losses)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_the_error_of_verification_is_its_definition(seed: int, rate: float) -> None:
    features, labels = make_identities(n_identities=8, size=6, dim=8, spread=1.2, seed=seed)
    expected = fnmr_by_definition(features, labels, rate)
    assert fnmr_at(features, labels, rate) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_the_error_of_identification_is_its_definition(seed: int, rate: float) -> None:
    features, labels = make_identities(n_identities=10, size=6, dim=8, spread=1.2, seed=seed)
    parts = split_gallery(labels, seed)
    expected = fnir_by_definition(features, labels, rate, *parts)
    assert fnir_at(features, labels, rate, seed) == pytest.approx(expected, abs=1e-9)


def test_perfect_embeddings_make_no_error_and_useless_ones_many() -> None:
    perfect, labels = make_identities(n_identities=10, size=5, dim=32, spread=0.01, seed=0)
    scores = score_verification(perfect, labels)
    assert set(scores.fnmr.values()) == set(scores.fnir.values()) == {0.0}
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(200, 32)).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    worse = score_verification(noise, np.arange(200) % 20)
    assert min(worse.fnmr.values()) > 0.95
    assert min(worse.fnir.values()) > 0.85


def test_a_stricter_rate_never_has_a_lower_error() -> None:
    features, labels = make_identities(n_identities=20, size=8, dim=8, spread=1.0, seed=1)
    errors = [fnmr_at(features, labels, rate) for rate in (0.3, 0.1, 0.01, 0.001)]
    assert errors == sorted(errors)
    errors = [fnir_at(features, labels, rate) for rate in (0.5, 0.1, 0.01)]
    assert errors == sorted(errors)


def test_gallery_and_probes_are_disjoint_and_unknown_probes_have_other_identities() -> None:
    labels = np.repeat(np.arange(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 1])
    gallery, known, between_cosine = split_gallery(labels, seed=3)
    assert sorted([*gallery, *known, *between_cosine]) == list(range(len(labels)))
    assert len(np.unique(labels[gallery])) == len(gallery) == 4
    assert set(labels[known]) == set(labels[gallery])
    assert not set(labels[between_cosine]) & set(labels[gallery])


def test_rates_and_labels_that_cannot_be_measured_are_refused() -> None:
    features, labels = make_identities(n_identities=3, size=4, seed=0)
    with pytest.raises(SettingError, match="fmr=0"):
        fnmr_at(features, labels, 0)
    with pytest.raises(LabelError, match="of two"):
        fnmr_at(features, np.zeros(12, dtype=np.int64), 0.1)
    with pytest.raises(LabelError, match="identities"):
        split_gallery(np.arange(12))
