"""Kept work belongs to one input, model and set of options."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from hilander import HiLander
from hilander.cli.kept_work import digest_rows, take_fingerprint, work_folder
from hilander.io.files import EmbeddingFile
from hilander.synthetic.identities import make_identities
from hilander.training.inference import plan_run

COMMON = {"model": "pretrained", "graph": None, "device": "cpu", "whiten": "auto"}


@pytest.fixture(scope="module")
def file():
    X, _ = make_identities(n_identities=6, size=8, dim=8, seed=0)
    return EmbeddingFile(X, None, None, Path("emb.npy"))


def fingerprint(file, k=None, **options):
    model = HiLander.pretrained()
    plan = plan_run(model.model_, file.features, model.run_settings({"k": k}))
    return take_fingerprint(Namespace(**(COMMON | options)), file, plan)


def test_the_same_run_has_the_same_fingerprint(file):
    assert fingerprint(file) == fingerprint(file)


@pytest.mark.parametrize("change", [{"whiten": "no"}, {"device": "cuda"}, {"k": 3}])
def test_another_setting_has_another_fingerprint(file, change):
    assert fingerprint(file) != fingerprint(file, **change)


def test_another_input_has_another_fingerprint(file):
    other = EmbeddingFile(file.features[::-1].copy(), None, None, file.source)
    assert fingerprint(file) != fingerprint(other)


def test_a_digest_depends_on_values_shape_and_type():
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    others = [rows + 1, rows.reshape(3, 4), rows.astype(np.float64)]
    assert len({digest_rows(one) for one in (rows, *others)}) == 4
    assert digest_rows(rows) == digest_rows(rows.copy())


def test_work_is_kept_next_to_the_run(tmp_path):
    assert work_folder(tmp_path / "run") == tmp_path.resolve() / "run.work"
