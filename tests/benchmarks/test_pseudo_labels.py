import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from benchmarks import pseudo_labels
from benchmarks.pseudo_labels import (
    NO_CLUSTERS,
    TRUTH,
    SmallEmbedder,
    Training,
    embed,
    format_pseudo_labels,
    run_seed,
    split_classes,
    train_embedder,
)
from hilander.comparison.methods import choose_methods
from hilander.comparison.rival import Rival
from hilander.errors import SettingError


def make_pictures(n_classes: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = rng.random((n_classes, 12, 12)) < 0.4
    labels = np.repeat(np.arange(n_classes), size)
    noise = rng.normal(0, 0.35, (len(labels), 12, 12))
    return (np.clip(shapes[labels] + noise, 0, 1) * 255).astype(np.uint8), labels


class FlatEmbedder(nn.Module):
    """Not the small network: any module will do."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(144, 16)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.map(pictures.flatten(1)), dim=1)


def make_flat(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return FlatEmbedder()


def test_the_four_parts_are_disjoint_and_hold_all_classes() -> None:
    images, labels = make_pictures(20, 4, 0)
    split = split_classes(images, labels)
    every = (split.shown, split.labelled, split.unlabelled, split.unseen)
    parts = [set(part[1].tolist()) for part in every]
    assert [len(part) for part in parts] == [6, 3, 6, 5]
    assert len(set().union(*parts)) == 20
    with pytest.raises(SettingError, match="too few"):
        split_classes(images[:8], labels[:8])


def test_embeddings_have_unit_length_and_training_separates_the_classes() -> None:
    images, labels = make_pictures(6, 20, 1)
    torch.manual_seed(0)
    network = SmallEmbedder(dim=8)
    before = embed(network, images)
    train_embedder(network, images, labels, Training(epochs=8, batch_size=32))
    after = embed(network, images)
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, atol=1e-5)

    def gap(features: np.ndarray) -> float:
        cosine = features @ features.T
        same = labels[:, None] == labels
        return float(cosine[same].mean() - cosine[~same].mean())

    assert gap(after) > gap(before) + 0.2


def test_training_on_fewer_than_two_classes_changes_no_weight() -> None:
    images, _ = make_pictures(2, 5, 2)
    network = make_flat(0)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    train_embedder(network, images, np.zeros(10, dtype=int), Training(epochs=1))
    train_embedder(network, images, np.arange(10), Training(epochs=1))  # singletons only
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_there_is_a_row_for_no_clusters_the_truth_and_every_method_and_failures_are_rows() -> None:
    def fail(problem, state, params):
        raise ValueError("no luck")

    images, labels = make_pictures(30, 12, 3)
    methods = [*choose_methods(["finch"]), Rival("failing", "paper", fail)]
    rows = list(run_seed(split_classes(images, labels), methods, 0, make_flat))
    assert [row["labels"] for row in rows] == [NO_CLUSTERS, TRUTH, "FINCH", "failing"]
    assert rows[3]["error"] == "ValueError: no luck"
    for row in rows[:3]:
        assert all(0 <= row[name] <= 1 for name in ("fnmr@0.001", "fnir@0.1"))
    table = format_pseudo_labels(rows).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert "*ValueError: no luck*" in table[5]
    assert "Not run yet" in format_pseudo_labels([])


def test_methods_are_trained_on_classes_that_the_embedder_was_not_trained_on(monkeypatch) -> None:
    images, labels = make_pictures(30, 6, 4)
    split = split_classes(images, labels)
    method_classes, embedded = [], []

    def watch(method, labelled, unlabelled, seed):
        method_classes.append(set(labelled[1].tolist()))
        return np.zeros(len(unlabelled), dtype=np.int64)

    learn = pseudo_labels.train_embedder

    def note(network, pictures, classes, settings):
        embedded.append(set(np.asarray(classes).tolist()))
        learn(network, pictures, classes, settings)

    monkeypatch.setattr(pseudo_labels, "cluster_with", watch)
    monkeypatch.setattr(pseudo_labels, "train_embedder", note)
    list(run_seed(split, choose_methods(["finch"]), 0, make_flat))
    assert method_classes == [set(split.labelled[1].tolist())]
    assert embedded[0] == set(split.shown[1].tolist())
    assert embedded[1] == embedded[0] | method_classes[0]
    assert len(embedded[2]) == len(embedded[1]) + len(set(split.unlabelled[1].tolist()))
