"""The estimator's `decoder`: chosen, tuned for, saved, and overridden."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from hilander import HiLander
from hilander.errors import SettingError
from hilander.hierarchy import levels
from hilander.hierarchy.decoding.decode import decode
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import recipe as evidence_training
from hilander.training.evidence import thresholds as evidence_judging
from hilander.training.evidence.thresholds import Judge
from hilander.training.plans import make_plan

QUICK = EvidenceLearning(epochs=2, batch_size=128, learning_rate=0.02, most_points=150)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 30)
    monkeypatch.setattr(evidence_training, "Judge", partial(Judge, most_points=150))
    monkeypatch.setattr(evidence_judging, "P_TAU_GRID", (0.3, 0.45, 0.6, 0.75))
    monkeypatch.setattr(evidence_judging, "MERGE_GRID", (0.6, 0.9))


def labelled(seed):
    return make_identities(n_identities=24, size=9, dim=16, spread=0.35, seed=seed)


@pytest.mark.parametrize("decoder", ["leiden", "infomap"])
def test_thresholds_are_tuned_with_the_decoder_that_is_asked_for(decoder, monkeypatch, tmp_path):
    if decoder == "infomap":  # the one extra; Leiden comes with the package
        pytest.importorskip("infomap")
    used = []

    def watch(graph, scores, p_tau, name, **settings):
        used.append(name)
        return decode(graph, scores, p_tau, name, **settings)

    monkeypatch.setattr(levels, "decode", watch)
    X, y = labelled(0)
    model = HiLander(decoder=decoder, hidden=16, learning=QUICK, device="cpu").fit(X, y)
    # The super-nodes are merged with care; they are learnt from in either way.
    assert set(used) >= {decoder, "contract"}
    assert model.rules_.decoder == decoder
    assert {row["p_tau"] for row in model.summary_["validation"]} >= {0.3, 0.45, 0.6, 0.75}
    X_new, y_new = labelled(1)
    used.clear()
    labels = model.predict(X_new)
    assert used[0] == decoder
    assert set(used[1:]) <= {"contract"}
    assert bcubed_f(y_new, labels) > 0.8
    loaded = HiLander.load(model.save(tmp_path / "model"))
    assert loaded.decoder == loaded.rules_.decoder == decoder
    np.testing.assert_array_equal(loaded.predict(X_new), labels)
    used.clear()
    loaded.cluster(X_new, decoder="contract")
    assert set(used) == {"contract"}


@pytest.mark.parametrize(("method", "auto"), [("evidence", "leiden"), ("paper", "parents")])
def test_auto_is_what_suits_the_method_and_a_choice_is_kept(method, auto):
    X, y = labelled(0)
    for asked, expected in (("auto", auto), ("parents", "parents"), ("contract", "contract")):
        plan = make_plan(HiLander(method=method, decoder=asked), X, y)
        assert plan.rules.decoder == expected


def test_an_unknown_decoder_is_refused_with_a_hint():
    X, y = labelled(0)
    with pytest.raises(SettingError, match="decoder='leidn' is not known; did you mean 'leiden'"):
        HiLander(decoder="leidn").fit(X, y)


@pytest.mark.parametrize(
    ("decoder", "package"), [("leiden", "networkit"), ("infomap", r"'hilander\[infomap\]'")]
)
def test_a_library_that_is_missing_is_told_before_anything_is_learnt(decoder, package, monkeypatch):
    def refuse(name):
        raise ImportError(f"No module named {name!r}")

    # Only what the communities import by name; the rest of Python goes on importing.
    from hilander.hierarchy.decoding import communities

    monkeypatch.setattr(communities, "importlib", SimpleNamespace(import_module=refuse))
    X, y = labelled(0)
    with pytest.raises(SettingError, match=f"pip install {package}"):
        HiLander(decoder=decoder).fit(X, y)
