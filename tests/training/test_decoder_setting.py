"""The parameter `decoder`: tuned for, saved, overridden, and its optional libraries."""

from types import SimpleNamespace

import numpy as np
import pytest

from hilander import HiLander
from hilander.errors import SettingError
from hilander.hierarchy import levels
from hilander.hierarchy.decoding.decode import decode
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import thresholds

pytestmark = pytest.mark.usefixtures("small_steps")
QUICK = EvidenceLearning(epochs=8, batch_size=128, learning_rate=0.02, most_points=150)


def make_set(seed):
    return make_identities(n_identities=24, size=9, dim=16, spread=0.35, seed=seed)


@pytest.mark.parametrize("decoder", ["leiden", "infomap"])
def test_thresholds_are_tuned_with_the_chosen_decoder(decoder, monkeypatch, tmp_path):
    if decoder == "infomap":  # an extra; Leiden comes with the package
        pytest.importorskip("infomap")
    used = []

    def watch(graph, scores, p_tau, name, **settings):
        used.append(name)
        return decode(graph, scores, p_tau, name, **settings)

    monkeypatch.setattr(levels, "decode", watch)
    X, y = make_set(0)
    model = HiLander(decoder=decoder, hidden=16, learning=QUICK, device="cpu").fit(X, y)
    assert set(used) == {decoder}
    assert model.rules_.decoder == decoder
    assert {row["p_tau"] for row in model.summary_["validation"]} >= set(thresholds.P_TAU_GRID)
    X_new, y_new = make_set(1)
    used.clear()
    labels = model.predict(X_new)
    assert used == [decoder]  # later levels merge by links
    assert bcubed_f(y_new, labels) > 0.8
    loaded = HiLander.load(model.save(tmp_path / "model"))
    assert loaded.decoder == loaded.rules_.decoder == decoder
    np.testing.assert_array_equal(loaded.predict(X_new), labels)
    used.clear()
    loaded.cluster(X_new, decoder="contract")
    assert set(used) == {"contract"}


@pytest.mark.parametrize(
    ("decoder", "package"), [("leiden", "networkit"), ("infomap", r"'hilander\[infomap\]'")]
)
def test_a_missing_library_is_reported_before_training(decoder, package, monkeypatch):
    def refuse(name):
        raise ImportError(f"No module named {name!r}")

    # Only the libraries of communities are refused.
    from hilander.hierarchy.decoding import communities

    monkeypatch.setattr(communities, "importlib", SimpleNamespace(import_module=refuse))
    X, y = make_set(0)
    with pytest.raises(SettingError, match=f"pip install {package}"):
        HiLander(decoder=decoder).fit(X, y)
