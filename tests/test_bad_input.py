"""Bad input gives one clear error; nothing is written and nothing is lost."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hilander import Hierarchy, HiLander
from hilander.errors import (
    EmbeddingError,
    FileFormatError,
    GraphError,
    HiLanderError,
    LabelError,
    ModelError,
    OutputError,
    SettingError,
)
from hilander.io.digests import skip_verification
from hilander.linkage.paper.training import LearningSettings
from hilander.synthetic.identities import make_identities

QUICK = LearningSettings(epochs=1, hierarchies=((3, 2),))


def quick(**changes):
    return HiLander(
        **{"method": "paper", "k": 4, "hidden": 8, "learning": QUICK, "device": "cpu", **changes}
    )


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=10, size=8, dim=8, seed=0)


@pytest.fixture(scope="module")
def model(labelled):
    return quick().fit(*labelled)


def refused(model, labelled, X, error, message):
    """Training and clustering refuse the embeddings with the same message."""
    with pytest.raises(error, match=message):
        quick().fit(X, labelled[1][: len(X)])
    with pytest.raises(error, match=message):
        model.predict(X)


def test_no_embeddings(model, labelled):
    refused(model, labelled, np.empty((0, 8)), EmbeddingError, "0 sample")
    refused(model, labelled, np.empty((80, 0)), EmbeddingError, "0 feature")
    refused(model, labelled, [], EmbeddingError, "Expected 2D array")


def test_one_point(model, labelled):
    with pytest.raises(EmbeddingError, match=r"1 sample.* minimum of 2"):
        quick().fit(labelled[0][:1], labelled[1][:1])
    assert model.predict(labelled[0][:1]).tolist() == [0]


def test_no_more_points_than_k(model, labelled):
    message = "k=4 needs 5 embeddings, got only 4; use k <= 3"
    with pytest.raises(GraphError, match=message):
        quick().fit(labelled[0][:4], [0, 0, 1, 1])
    with pytest.raises(GraphError, match=message):
        model.predict(labelled[0][:4])
    assert len(model.predict(labelled[0][:5])) == 5


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_the_first_row_that_is_not_finite_is_named(model, labelled, value, word):
    X = labelled[0].copy()
    X[[17, 40], 3] = value
    refused(model, labelled, X, EmbeddingError, f"row 17 .*{word}")


def test_rows_of_zeros(model, labelled):
    X = labelled[0].copy()
    X[[21, 50]] = 0
    refused(model, labelled, X, EmbeddingError, r"row 21 is all zeros \(2 such rows\)")


def test_constant_features(model, labelled):
    X = np.ones((80, 8)) * np.linspace(1, 2, 80)[:, None]
    refused(model, labelled, X, EmbeddingError, "point the same way")


def test_another_dimension_than_the_models(model):
    with pytest.raises(EmbeddingError, match="X has 5 features, but HiLander is expecting 8"):
        model.predict(np.eye(5))


def test_not_a_matrix_of_numbers(model, labelled):
    refused(model, labelled, np.ones(8), EmbeddingError, "Expected 2D array")
    refused(model, labelled, np.full((80, 8), "a"), EmbeddingError, "numbers")
    with pytest.raises(TypeError, match="not numbers"):
        model.predict(np.array([[{}] * 8] * 6, dtype=object))


def test_labels_of_another_length(labelled):
    X, y = labelled
    with pytest.raises(LabelError, match="got 79 labels for 80 embeddings"):
        quick().fit(X, y[:-1])


def test_labels_that_are_missing(labelled):
    X, _ = labelled
    with pytest.raises(LabelError, match="y is None"):
        quick().fit(X, None)
    with pytest.raises(LabelError, match="labels are empty, NaN or None, which means unknown"):
        quick().fit(X, [None] * len(X))


def test_labels_of_another_length_when_scoring(model, labelled):
    X, y = labelled
    with pytest.raises(LabelError):
        model.score(X, y[:-1])


def test_one_identity_only(labelled):
    X, y = labelled
    with pytest.raises(LabelError, match="one identity only"):
        quick().fit(X, np.zeros_like(y))


def test_every_identity_a_singleton(labelled):
    X, y = labelled
    with pytest.raises(LabelError, match="single embedding"):
        quick().fit(X, np.arange(len(y)))


def test_strings_are_accepted_as_labels(labelled):
    X, y = labelled
    assert len(quick().fit(X, [f"id {label}" for label in y]).labels_) == 80


def test_two_identities_are_enough():
    X, y = make_identities(n_identities=2, size=8, dim=8, seed=0)
    assert len(quick().fit(X, y).labels_) == 16


def test_a_missing_model(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist, expected a model folder"):
        HiLander.load(tmp_path / "none")
    (tmp_path / "file").write_text("hello")
    with pytest.raises(FileFormatError, match="is a file"):
        HiLander.load(tmp_path / "file")
    with pytest.raises(FileFormatError, match="expected a model folder written by hilander"):
        HiLander.load(tmp_path)


def test_a_run_is_not_a_model(model, labelled, tmp_path):
    run = model.cluster(labelled[0]).save(tmp_path / "run")
    with pytest.raises(FileFormatError, match="is a run folder, expected a model folder"):
        HiLander.load(run)
    with pytest.raises(FileFormatError, match="is a model folder, expected a run folder"):
        Hierarchy.load(model.save(tmp_path / "model"))


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "hilander.json"])
def test_a_model_with_a_truncated_file(model, tmp_path, name):
    folder = model.save(tmp_path / "model")
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises((ModelError, FileFormatError), match=name):
        HiLander.load(folder)


@pytest.mark.parametrize("change", [{"parameters": None}, {"rules": {"k": 3, "speed": 1}}])
def test_a_model_of_another_version(model, tmp_path, change):
    folder = model.save(tmp_path / "model")
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with skip_verification(), pytest.raises(ModelError, match="is not a model of this version"):
        HiLander.load(folder)


def tree_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_output_folder_of_another_program_is_not_changed(model, labelled, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    for save in (model.save, model.cluster(labelled[0]).save):
        with pytest.raises(OutputError, match="was not written by hilander"):
            save(tmp_path)
        with pytest.raises(OutputError):
            save(tmp_path / "photo.jpg")
    assert tree_of(tmp_path) == {"photo.jpg": b"precious"}


def test_a_model_is_not_overwritten_by_a_run(model, labelled, tmp_path):
    folder = model.save(tmp_path / "out")
    before = tree_of(folder)
    with pytest.raises(OutputError, match="is a model folder, expected a run folder"):
        model.cluster(labelled[0]).save(folder)
    assert tree_of(folder) == before


def test_a_folder_that_cannot_be_created(model, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_target(model, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OutputError, match="permission is denied"):
            model.save(tmp_path / "model")
    finally:
        tmp_path.chmod(0o700)


FULL_DISK = """
import resource, sys
from pathlib import Path
from hilander import HiLander
from hilander.errors import OutputError
from hilander.synthetic.identities import make_identities

folder = Path(sys.argv[1])
model = HiLander.load(folder / "model")
X, y = make_identities(n_identities=10, size=8, dim=8, seed=0)
found = model.cluster(X)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))  # no file may grow beyond
fit = HiLander(method="paper", k=4, hidden=8, learning=model.learning, device="cpu").fit
tries = [
    lambda: model.save(folder / "model"),
    lambda: model.save(folder / "new"),
    lambda: found.save(folder / "run"),
    lambda: found.to_parquet(folder / "rows.parquet"),
    lambda: fit(X, y, checkpoint=folder / "checkpoint"),
]
for number, attempt in enumerate(tries):
    try:
        attempt()
    except OutputError as error:
        print(number, error)
"""


def test_a_full_disk_does_not_damage_existing_files(model, tmp_path):
    folder = model.save(tmp_path / "model")
    before = tree_of(tmp_path)
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    place = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "3", "4"]
    assert all("cannot be written" in line for line in lines)
    assert tree_of(tmp_path) == before
    assert HiLander.load(folder).rules_ == model.rules_
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 600


def test_every_error_derives_from_the_base_class_and_a_builtin():
    for kind in (EmbeddingError, GraphError, LabelError, ModelError, FileFormatError):
        assert issubclass(kind, HiLanderError)
        assert issubclass(kind, ValueError)
    assert issubclass(OutputError, OSError)


def test_a_graph_of_another_type_is_refused(labelled):
    X, _ = labelled
    with pytest.raises(SettingError, match="graph is a ndarray, expected a KnnGraph"):
        HiLander.pretrained().cluster(X, graph=np.zeros((len(X), 3), dtype=int))


@pytest.mark.parametrize("seed", [None, -1, 0.5, True])
def test_a_seed_that_is_no_whole_number_is_refused(labelled, seed):
    with pytest.raises(SettingError, match="is not a seed, expected a whole number"):
        HiLander(random_state=seed).fit(*labelled)
