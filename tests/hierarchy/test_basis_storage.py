"""What a hierarchy was computed from, in its run folder."""

from dataclasses import replace

import numpy as np
import pytest

from hilander.errors import FileFormatError, SettingError
from hilander.estimator import HiLander
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.basis_storage import basis_reader, write_base
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.storage import write_graph, write_hierarchy
from hilander.io.writing import folder_writer, open_stored_folder
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def hierarchy():
    X, _ = make_identities(n_identities=20, size=8, dim=16, spread=0.5, seed=1)
    return HiLander.pretrained(device="cpu").cluster(X)


@pytest.fixture
def folder(hierarchy, tmp_path):
    basis = hierarchy.basis
    with folder_writer(tmp_path / "run", "run") as inside:
        write_hierarchy(hierarchy, inside, None)
        scores = EdgeScores(basis.linkage, hierarchy.density)
        write_graph(inside, basis.neighbours, basis.affinity, scores)
        write_base(inside, basis.features, basis.base)
    return tmp_path / "run"


def test_a_stored_basis_is_mapped_and_equal(hierarchy, folder):
    basis, found = hierarchy.basis, Hierarchy.load(folder).basis
    assert isinstance(found.features, np.memmap)
    for name in ("features", "neighbours", "affinity", "linkage"):
        np.testing.assert_array_equal(getattr(found, name), getattr(basis, name))
    assert found.base.rules == basis.base.rules
    assert found.base.measures == basis.base.measures
    assert found.base.n_points == 160
    raw = make_identities(n_identities=2, size=4, dim=16, seed=5)[0]
    preparations = (found.base.preparation, basis.base.preparation)
    np.testing.assert_array_equal(*(one.apply(raw) for one in preparations))


def test_the_rules_of_a_part_keep_the_threshold_that_was_applied(hierarchy):
    rules = hierarchy.basis.base.frozen_rules
    assert rules.p_tau == hierarchy.basis.base.p_tau
    assert rules.threshold(1) == hierarchy.basis.base.rules.threshold(1)


def test_a_damaged_base_is_refused_and_a_missing_one_is_none(folder):
    (folder / "prepared.npy").write_bytes(b"?")
    with pytest.raises(FileFormatError, match="damaged"):
        Hierarchy.load(folder).basis  # noqa: B018
    (folder / "prepared.npy").unlink()
    assert basis_reader(open_stored_folder(folder, "run")) is None
    with pytest.raises(SettingError, match="without its embeddings"):
        Hierarchy.load(folder).basis  # noqa: B018


def test_a_graph_of_other_points_is_refused(hierarchy):
    with pytest.raises(SettingError, match="expected one list for each point"):
        replace(hierarchy.basis, features=hierarchy.basis.features[:-1])
