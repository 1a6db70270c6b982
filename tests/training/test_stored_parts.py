"""The pretrained model composes with scikit-learn; a loaded model is stored and copied."""

import numpy as np
import pytest
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from hilander import HiLander


def test_the_pretrained_model_needs_no_labels_to_fit_and_predict(labelled):
    model = HiLander.pretrained()
    found = model.fit_predict(labelled[0])
    np.testing.assert_array_equal(found, HiLander.pretrained().predict(labelled[0]))
    np.testing.assert_array_equal(found, model.hierarchy_.labels())


def test_the_pretrained_model_is_a_clusterer_in_a_pipeline(labelled):
    assert is_clusterer(HiLander.pretrained())
    assert not is_clusterer(HiLander())
    pipeline = make_pipeline(Normalizer(), HiLander.pretrained())
    found = clone(pipeline).fit_predict(labelled[0])
    np.testing.assert_array_equal(found, pipeline.fit(labelled[0]).predict(labelled[0]))


def test_a_clone_of_the_pretrained_model_keeps_weights_and_settings():
    copied = clone(HiLander.pretrained(device="cpu"))
    assert copied.device == "cpu"
    assert copied.model_ is not None
    assert is_clusterer(clone(copied))


def test_a_clone_of_a_stored_model_is_untrained(tmp_path):
    folder = HiLander.pretrained().save(tmp_path / "model")
    with pytest.raises(NotFittedError):
        clone(HiLander.load(folder)).predict(np.eye(8))
