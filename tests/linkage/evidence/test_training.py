import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hilander.errors import SettingError
from hilander.learning.checkpoint import Checkpoint
from hilander.learning.loop import Run
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.network import EdgeClassifier, EvidenceSettings
from hilander.linkage.evidence.training import (
    EdgeSampler,
    EvidenceLearning,
    Examples,
    for_fine_tuning,
    make_evidence_network,
    train_classifier,
)

WIDTH = 5
SETTINGS = EvidenceLearning(epochs=4, batch_size=64, learning_rate=0.02)


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 8)


@pytest.fixture(scope="module")
def examples():
    """Two episodes with a curved boundary between classes; columns have very different scales."""
    rng = np.random.default_rng(0)
    made = []
    for n_nodes, weight in ((60, 1.0), (25, 0.4)):
        features = rng.normal(size=(n_nodes, 6, WIDTH))
        same = features[..., 0] + features[..., 1] ** 2 > 1
        scaled = features * [100, 0.01, 1, 1, 1] + [1000, 0, 0, -3, 0]
        made.append(Examples(scaled.astype(np.float32), same, weight))
    return made


def fresh_classifier(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return EdgeClassifier(WIDTH, EvidenceSettings(8, 2))


def state(classifier):
    return {key: value.clone() for key, value in classifier.state_dict().items()}


def equal(one, two):
    return all(torch.equal(one[key], two[key]) for key in one)


def test_the_loss_falls_and_most_edges_are_classified_correctly(examples):
    classifier = fresh_classifier()
    settings = EvidenceLearning(epochs=25, batch_size=128, learning_rate=0.03)
    history = train_classifier(classifier, examples, settings, seed=0)
    assert [record["epoch"] for record in history] == list(range(25))
    assert history[-1]["loss"] < 0.6 * history[0]["loss"]
    right = np.mean(
        [((classifier.predict(one.edge_features) > 0.5) == one.same).mean() for one in examples]
    )
    assert right > 0.9
    assert not classifier.training


def test_mean_and_standard_deviation_of_the_training_features_are_kept(examples):
    classifier = fresh_classifier()
    train_classifier(classifier, examples, SETTINGS, seed=0)
    rows = np.concatenate([one.edge_features.reshape(-1, WIDTH) for one in examples]).astype(float)
    np.testing.assert_allclose(classifier.centre, rows.mean(axis=0), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(classifier.scale, rows.std(axis=0), rtol=0.02, atol=2e-3)


def test_a_constant_column_gives_finite_results(examples):
    flat = [
        Examples(np.where(np.arange(WIDTH) == 2, 1, one.edge_features).astype(np.float32), one.same)
        for one in examples
    ]
    classifier = fresh_classifier()
    history = train_classifier(classifier, flat, SETTINGS, seed=0)
    assert math.isfinite(history[-1]["loss"])
    assert all(np.isfinite(classifier.predict(one.edge_features)).all() for one in flat)


def test_the_same_seed_gives_the_same_weights_on_one_thread_and_on_two(examples, torch_threads):
    found = []
    for threads in (1, 1, 2):
        torch_threads(threads)
        classifier = fresh_classifier()
        history = train_classifier(classifier, examples, SETTINGS, seed=3, device="cpu")
        found.append((state(classifier), history))
    for weights, history in found[1:]:
        assert equal(weights, found[0][0])
        assert history == found[0][1]


def test_another_seed_draws_other_edges(examples):
    classifiers = [fresh_classifier(), fresh_classifier()]
    for seed, classifier in enumerate(classifiers):
        train_classifier(classifier, examples, SETTINGS, seed=seed)
    assert not equal(state(classifiers[0]), state(classifiers[1]))


def test_the_initial_weights_depend_on_the_seed_alone():
    settings = EvidenceSettings(hidden=4)
    one = make_evidence_network(settings, 0)
    torch.rand(3)
    assert equal(one.state_dict(), make_evidence_network(settings, 0).state_dict())
    assert not equal(one.state_dict(), make_evidence_network(settings, 1).state_dict())
    before = torch.get_rng_state()
    make_evidence_network(settings, 0)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("at_step", [1, 12, 20, 31])
def test_an_interrupted_training_continues_to_the_same_weights(
    examples, tmp_path, monkeypatch, at_step
):
    whole = fresh_classifier()
    history = train_classifier(whole, examples, SETTINGS, seed=0)
    run = Run(Checkpoint(tmp_path / "kept.safetensors", "mark"))
    real, steps = evidence_learning.edge_loss, []

    def interrupt(*arguments):
        steps.append(arguments)
        if len(steps) == at_step:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(evidence_learning, "edge_loss", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train_classifier(fresh_classifier(), examples, SETTINGS, seed=0, run=run)
    counted = []

    def count(*arguments):
        counted.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(evidence_learning, "edge_loss", count)
    resumed = fresh_classifier()
    again = train_classifier(resumed, examples, SETTINGS, seed=0, run=run)
    assert len(counted) == 8 * (4 - at_step // 8)
    assert again == history
    assert equal(state(resumed), state(whole))


def test_a_finished_classifier_is_not_trained_again(examples, tmp_path, monkeypatch):
    run = Run(Checkpoint(tmp_path / "kept.safetensors", "mark"))
    first = fresh_classifier()
    history = train_classifier(first, examples, SETTINGS, seed=0, run=run)
    monkeypatch.setattr(evidence_learning, "edge_loss", None)
    again = fresh_classifier(seed=1)
    assert train_classifier(again, examples, SETTINGS, seed=0, run=run) == history
    assert equal(state(first), state(again))


def test_an_episode_is_drawn_by_its_weight_and_the_square_root_of_its_nodes():
    shapes = ((400, 3, 1.0), (100, 6, 1.0), (100, 3, 0.5))
    examples = [
        Examples(np.zeros((n, k, 1), dtype=np.float32), np.zeros((n, k), dtype=bool), weight)
        for n, k, weight in shapes
    ]
    edges = EdgeSampler(examples).draw(20_000, np.random.default_rng(0)).numpy()
    shares = np.histogram(edges, [0, 1200, 1800, 2100])[0] / 20_000
    np.testing.assert_allclose(shares, np.array([20, 10, 5]) / 35, atol=0.02)
    assert len(np.unique(edges)) > 2000  # every edge of an episode can be drawn


def test_each_member_has_its_own_batch(examples, monkeypatch):
    seen = []
    real = EdgeClassifier.member_logits

    def watch(self, features):
        seen.append(features.clone())
        return real(self, features)

    monkeypatch.setattr(EdgeClassifier, "member_logits", watch)
    train_classifier(fresh_classifier(), examples, replace(SETTINGS, epochs=1, noise=0.0), seed=0)
    assert len(seen) == 8
    known = {
        row.tobytes() for one in examples for row in one.edge_features.reshape(-1, WIDTH)
    }  # without noise, features are passed unchanged
    for features in seen:
        assert features.shape == (2, 64, WIDTH)
        assert {row.tobytes() for row in features.reshape(-1, WIDTH).numpy()} <= known
        assert not torch.equal(features[0], features[1])


def test_the_loss_compares_each_members_edges_with_their_own_truth(examples, monkeypatch):
    truth = {
        row.tobytes(): bool(same)
        for one in examples
        for row, same in zip(one.edge_features.reshape(-1, WIDTH), one.same.ravel(), strict=True)
    }
    seen = []
    real, loss = EdgeClassifier.member_logits, evidence_learning.edge_loss
    monkeypatch.setattr(
        EdgeClassifier,
        "member_logits",
        lambda self, features: seen.append(features) or real(self, features),
    )

    def watch(logits, same):
        expected = [[truth[row.tobytes()] for row in member] for member in seen[-1].numpy()]
        assert logits.shape == same.shape == (2, 64)
        assert (same > 0.5).tolist() == expected
        return loss(logits, same)

    monkeypatch.setattr(evidence_learning, "edge_loss", watch)
    train_classifier(fresh_classifier(), examples, replace(SETTINGS, epochs=1, noise=0.0), seed=0)
    assert seen


def test_noise_is_in_units_of_the_standard_deviation(examples, monkeypatch):
    seen, real = [], EdgeClassifier.member_logits
    monkeypatch.setattr(
        EdgeClassifier, "member_logits", lambda self, x: seen.append(x.clone()) or real(self, x)
    )
    for noise in (0.0, 0.3):
        classifier = fresh_classifier()
        train_classifier(classifier, examples, replace(SETTINGS, noise=noise), seed=0)
    plain, noisy = torch.stack(seen).chunk(2)
    moved = noisy - plain
    np.testing.assert_allclose(moved.std(dim=(0, 1, 2)) / classifier.scale, 0.3, rtol=0.1)
    np.testing.assert_allclose(moved.mean(dim=(0, 1, 2)) / classifier.scale, 0, atol=0.03)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_same_seed_gives_the_same_weights_with_and_without_noise(examples, noise):
    found = []
    for settings in (replace(SETTINGS, noise=noise),) * 2 + (replace(SETTINGS, noise=0.4),):
        torch.rand(3)  # the global generator is not used
        classifier = fresh_classifier()
        train_classifier(classifier, examples, settings, seed=0)
        found.append(state(classifier))
    assert equal(found[0], found[1])
    assert not equal(found[0], found[2])


def test_training_does_not_change_the_edge_features(examples):
    before = [one.edge_features.copy() for one in examples]
    train_classifier(fresh_classifier(), examples, replace(SETTINGS, noise=0.5), seed=0)
    for one, features in zip(examples, before, strict=True):
        np.testing.assert_array_equal(one.edge_features, features)


def test_a_trained_classifier_keeps_its_scaling_when_it_is_trained_further(examples):
    classifier = fresh_classifier()
    classifier.set_scaling(torch.full((WIDTH,), 2.0), torch.full((WIDTH,), 3.0))
    before = state(classifier)
    train_classifier(classifier, examples, SETTINGS, seed=0, fit_scaling=False)
    after = state(classifier)
    for name in ("centre", "scale"):
        assert torch.equal(after[name], before[name])
    assert not equal(after, before)


def test_fine_tuning_has_fewer_epochs_at_a_lower_rate():
    less = for_fine_tuning(EvidenceLearning(epochs=5, noise=0.3, batch_size=7))
    assert 1 <= less.epochs < 5
    assert less.learning_rate < EvidenceLearning().learning_rate
    assert (less.noise, less.batch_size) == (0.3, 7)
    assert for_fine_tuning(EvidenceLearning(epochs=1)).epochs == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 0},
        {"epochs": 1.5},
        {"batch_size": 0},
        {"most_points": -1},
        {"learning_rate": 0},
        {"learning_rate": math.nan},
        {"learning_rate": math.inf},
        {"weight_decay": -1e-3},
        {"noise": -0.1},
        {"noise": math.nan},
    ],
)
def test_an_invalid_setting_is_refused(changes):
    with pytest.raises(SettingError, match=f"{next(iter(changes))}="):
        EvidenceLearning(**changes)


def test_numpy_integers_become_python_integers():
    learning = EvidenceLearning(epochs=np.int32(2), batch_size=np.int64(64))
    assert learning == EvidenceLearning(epochs=2, batch_size=64)
    assert type(learning.epochs) is int
