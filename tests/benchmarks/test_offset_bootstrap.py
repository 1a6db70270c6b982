import numpy as np
import pytest

from benchmarks import pretrained, pretrained_sets
from benchmarks.offset_bootstrap import OffsetBootstrap
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.synthetic.identity_bootstrap import IdentityBootstrap


def learn_offsets(kind=OffsetBootstrap):
    return kind(Episode(*make_identities(n_identities=40, size=12, dim=16, spread=0.9, seed=0)))


@pytest.mark.parametrize(
    ("sizes", "as_hard", "total"), [("singles", False, -281.354), ("log", True, -387.284)]
)
def test_the_sets_are_those_of_the_shipped_pretrained_model(sizes, as_hard, total):
    rng = np.random.default_rng(["singles", "log"].index(sizes))
    made = learn_offsets().make(sizes, 900, rng, as_hard=as_hard)
    assert float(made.features.sum()) == pytest.approx(total, abs=0.01)


def test_members_of_a_large_identity_nearly_repeat_and_those_of_fit_do_not():
    nearest = []
    for kind in (OffsetBootstrap, IdentityBootstrap):
        made = learn_offsets(kind)._fill(np.array([500]), 1.0, np.random.default_rng(0))
        cosine = made.features @ made.features.T - 2 * np.eye(500)
        nearest.append(np.median(cosine.max(axis=1)))
    assert nearest[0] > 0.97 > 0.95 > nearest[1]


def test_the_thresholds_of_the_pretrained_model_are_chosen_on_such_sets_too(monkeypatch):
    options = {}

    class Recorder:
        def __init__(self, *_, **how):
            options.update(how)

        def choose(self, *_):
            return None, []

    monkeypatch.setattr(pretrained, "ThresholdSearch", Recorder)
    monkeypatch.setattr(pretrained, "make_validation_sets", lambda seed: ())
    pretrained.choose_thresholds(None, [], pretrained.make_plan(0))
    assert options["bootstrap"] is OffsetBootstrap


def test_the_recipe_of_the_pretrained_model_uses_this_bootstrap(monkeypatch):
    known = Episode(*make_identities(n_identities=12, size=5))
    asked = []

    def make(self, sizes, *_, **how):
        asked.append((sizes, how["as_hard"]))
        return known

    monkeypatch.setattr(OffsetBootstrap, "make", make)
    list(pretrained_sets.bootstrap_source(known, np.random.default_rng(0), with_small=True))
    assert {as_hard for _, as_hard in asked} == {True, False}
    assert ("small", True) in asked
