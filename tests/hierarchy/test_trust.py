"""Few points of different identities."""

import json

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.trust import WHERE_FEWEST, WHERE_LOW, estimate_trust
from hilander.synthetic.identities import make_identities


def make_points(n_identities, size):
    return make_identities(n_identities=n_identities, size=size, dim=24, spread=0.5, seed=1)[0]


@pytest.fixture(scope="module")
def model():
    return HiLander.pretrained(device="cpu")


def test_links_between_different_identities_have_a_low_confidence(model):
    found = model.cluster(make_points(60, 1))
    assert found.trust == WHERE_LOW
    assert (found.confidence[~found.is_peak] <= WHERE_LOW).all()
    assert (found.confidence[found.is_peak] == 1).all()
    assert (found.levels[0].linkage[~np.isnan(found.levels[0].linkage)] > WHERE_LOW).any()


def test_few_points_of_several_each_and_many_points_are_trusted(model):
    assert model.cluster(make_points(10, 6)).trust == 1
    assert model.cluster(make_points(500, 1)).trust == 1


def test_fewer_points_than_can_be_compared_are_half_trusted():
    assert estimate_trust(np.ones((4, 3), dtype=np.float32)) == WHERE_FEWEST


def test_a_run_keeps_its_trust_and_says_so(tmp_path, capsys):
    np.save(tmp_path / "few.npy", make_points(40, 1))
    run = tmp_path / "run"
    assert main(["cluster", str(tmp_path / "few.npy"), "-o", str(run)]) == 0
    assert "out of its depth" in capsys.readouterr().out
    found = Hierarchy.load(run)
    assert found.trust == WHERE_LOW
    assert (found.confidence[~found.is_peak] <= WHERE_LOW).all()
    assert "out of its depth" in json.loads((run / "run.json").read_text())["remark"]
    np.save(tmp_path / "more.npy", make_points(10, 6)[:20])
    assert main(["update", str(run), str(tmp_path / "more.npy"), "--rerun", "no"]) == 0
    updated = Hierarchy.load(run)
    assert updated.trust == estimate_trust(np.asarray(updated.basis.linkage))
