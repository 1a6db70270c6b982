import numpy as np
import pytest
import torch

from hilander.linkage.evidence.network import EdgeClassifier, EvidenceSettings


@pytest.mark.parametrize("n_edges", [1, 63, 64, 65, 200])
@pytest.mark.parametrize(("width", "hidden", "members"), [(1, 1, 1), (5, 8, 2), (39, 33, 5)])
def test_the_compiled_classifier_gives_what_the_network_gives(n_edges, width, hidden, members):
    torch.manual_seed(0)
    classifier = EdgeClassifier(width, EvidenceSettings(hidden, members))
    rng = np.random.default_rng(n_edges)
    scale = torch.from_numpy(rng.uniform(0.2, 3, width).astype(np.float32))
    classifier.set_scaling(torch.randn(width), scale)
    features = (8 * rng.normal(size=(n_edges, 1, width))).astype(np.float32)  # some are clipped
    with torch.no_grad():
        expected = torch.sigmoid(classifier(torch.from_numpy(features[:, 0]))).numpy()
    np.testing.assert_allclose(classifier.predict(features)[:, 0], expected, atol=2e-6)


def test_columns_need_not_be_contiguous():
    classifier = EdgeClassifier(3, EvidenceSettings(4, 2))
    features = np.random.default_rng(1).normal(size=(11, 5, 3)).astype(np.float32)
    by_column = np.moveaxis(np.ascontiguousarray(np.moveaxis(features, -1, 0)), 0, -1)
    np.testing.assert_array_equal(classifier.predict(by_column), classifier.predict(features))


def test_a_certain_rejection_is_a_probability_of_almost_0():
    classifier = EdgeClassifier(2, EvidenceSettings(4, 2))
    with torch.no_grad():
        classifier.last.bias.fill_(-200.0)
    found = classifier.predict(np.zeros((3, 2, 2), dtype=np.float32))
    assert (found == 0).all()
