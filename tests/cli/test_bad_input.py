"""Bad input: exit code 2, an error of one line, and nothing is written."""

import errno
import os

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.synthetic.identities import make_identities

QUICK = ["--method", "paper", "--epochs", "2", "--hidden", "8", "--quiet"]


def snapshot(folder):
    return {p: p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    X, y = make_identities(n_identities=12, size=8, dim=8)
    np.savez(folder / "train.npz", features=X, labels=y)
    assert main(["train", f"{folder}/train.npz", "-o", f"{folder}/model", *QUICK]) == 0
    return folder / "model"


@pytest.fixture
def refused(tmp_path, capsys):
    """Run a command that must be refused, and give its error."""

    def run(*arguments):
        before = snapshot(tmp_path)
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        printed = capsys.readouterr()
        lines = [line for line in printed.err.splitlines() if "labels matched by" not in line]
        assert lines[0].startswith("hilander: error: ")
        assert len(lines) == 1
        assert printed.out == ""
        assert snapshot(tmp_path) == before
        return printed.err

    return run


def write(folder, X, y=None):
    arrays = {"features": X} if y is None else {"features": X, "labels": y}
    np.savez(folder / "in.npz", **arrays)
    return folder / "in.npz"


def spoil(kind):
    """Embeddings that cannot be clustered, and words of the error."""
    X, _ = make_identities(n_identities=12, size=8, dim=8)
    if kind == "empty":
        return X[:0], "0 sample"
    if kind == "one point":
        return X[:1], "1 sample"
    if kind == "n <= k":
        return X[:3], "got only 3"
    if kind == "nan":
        X[37, 2] = np.nan
        return X, "row 37"
    if kind == "inf":
        X[5, 0] = np.inf
        return X, "row 5"
    if kind == "zero row":
        X[7] = 0
        return X, "row 7 is all zeros"
    if kind == "constant":
        return np.ones_like(X), "point the same way"
    raise ValueError(kind)


KINDS = ["empty", "one point", "n <= k", "nan", "inf", "zero row", "constant"]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_embeddings_are_refused_by_train(kind, tmp_path, refused):
    X, words = spoil(kind)
    path = write(tmp_path, X, np.arange(len(X)) // 2 % 4)
    assert words in refused("train", path, "-o", tmp_path / "deep" / "model", *QUICK)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_embeddings_are_refused_by_cluster(kind, model, tmp_path, refused):
    X, words = spoil(kind)
    path = write(tmp_path, X)
    assert words in refused("cluster", path, "-m", model, "-o", tmp_path / "deep" / "run")


def test_a_wrong_dimension_for_the_model_is_refused(model, tmp_path, refused):
    path = write(tmp_path, make_identities(dim=5)[0])
    printed = refused("cluster", path, "-m", model, "-o", tmp_path / "run")
    assert "5 features" in printed
    assert "8" in printed


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.zeros(96, int), "one identity only"),
        (np.arange(96), "single embedding"),
        (np.full(96, np.nan), "96 of 96 labels are empty, NaN or None, which means unknown"),
    ],
)
def test_labels_without_pairs_of_both_kinds_are_refused(labels, words, tmp_path, refused):
    X, _ = make_identities(n_identities=12, size=8, dim=8)
    printed = refused("train", write(tmp_path, X, labels), "-o", tmp_path / "m", *QUICK)
    assert words in printed


def test_labels_of_another_length_are_refused(model, tmp_path, refused):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X)
    np.save(tmp_path / "y.npy", y[:-1])
    labels = ["--labels", tmp_path / "y.npy"]
    printed = refused("train", path, *labels, "-o", tmp_path / "m", *QUICK)
    assert "got 95 labels for 96 embeddings" in printed
    assert main(["cluster", f"{path}", "-m", f"{model}", "-o", f"{tmp_path}/r", "--quiet"]) == 0
    assert "got 95 labels for 96" in refused("score", tmp_path / "r", *labels)


def test_missing_labels_are_refused_with_the_option_that_names_them(tmp_path, refused):
    path = write(tmp_path, make_identities()[0])
    assert "--labels" in refused("train", path, "-o", tmp_path / "m", *QUICK)


def test_labels_can_be_strings(tmp_path):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, np.array([f"person {label}" for label in y]))
    assert main(["train", f"{path}", "-o", f"{tmp_path}/m", *QUICK]) == 0


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet", ".csv", ".tsv", ".pkl"])
def test_missing_truncated_and_foreign_files_are_refused(suffix, model, tmp_path, refused):
    command = ("-m", model, "-o", tmp_path / "run")
    assert "does not exist" in refused("cluster", tmp_path / f"no{suffix}", *command)
    foreign = tmp_path / f"foreign{suffix}"
    foreign.write_text("these are words and no numbers\n" * 20)
    refused("cluster", foreign, *command)
    whole = write(tmp_path, make_identities(n_identities=12, size=8, dim=8)[0])
    if suffix in (".npy", ".parquet"):
        assert main(["convert", f"{whole}", f"{tmp_path}/whole{suffix}"]) == 0
        whole = tmp_path / f"whole{suffix}"
    truncated = tmp_path / f"truncated{suffix}"
    truncated.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    refused("cluster", truncated, *command)


def test_a_folder_that_is_no_model_is_refused(model, tmp_path, refused):
    path = write(tmp_path, make_identities(n_identities=12, size=8, dim=8)[0])
    out = ("-o", tmp_path / "run")
    assert "does not exist" in refused("cluster", path, "-m", tmp_path / "none", *out)
    (tmp_path / "foreign").mkdir()
    assert "no hilander.json" in refused("cluster", path, "-m", tmp_path / "foreign", *out)
    assert main(["cluster", f"{path}", "-m", f"{model}", "-o", f"{tmp_path}/r", "--quiet"]) == 0
    assert "is a run folder" in refused("cluster", path, "-m", tmp_path / "r", *out)
    assert "is a model folder" in refused("score", model, "--labels", path)


def test_a_damaged_model_is_refused(model, tmp_path, refused):
    import shutil

    damaged = shutil.copytree(model, tmp_path / "damaged")
    weights = damaged / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    path = write(tmp_path, make_identities(n_identities=12, size=8, dim=8)[0])
    assert "damaged" in refused("cluster", path, "-m", damaged, "-o", tmp_path / "run")


def output_cases(folder):
    (folder / "photos").mkdir()
    (folder / "photos" / "holiday.txt").write_text("mine")
    (folder / "file").write_text("mine")
    return {
        "photos": "was not written by hilander",
        "file": "is a file",
        "file/model": "a part of the path is a file",
    }


@pytest.mark.parametrize("place", ["photos", "file", "file/model"])
def test_an_output_folder_of_others_is_refused_before_training(
    place, model, tmp_path, refused, monkeypatch
):
    words = output_cases(tmp_path)[place]
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, y)

    def never(*_, **__):
        raise AssertionError("must not be called")

    monkeypatch.setattr("hilander.estimator.HiLander.fit", never)
    monkeypatch.setattr("hilander.estimator.HiLander.walk", never)
    assert words in refused("train", path, "-o", tmp_path / place, *QUICK)
    assert words in refused("cluster", path, "-m", model, "-o", tmp_path / place)
    assert words in refused("demo", "-o", tmp_path / place)


def test_a_run_is_not_written_over_a_model(model, tmp_path, refused):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, y)
    assert main(["cluster", f"{path}", "-m", f"{model}", "-o", f"{tmp_path}/run", "--quiet"]) == 0
    assert "is a run folder" in refused("train", path, "-o", tmp_path / "run", *QUICK)


def test_a_read_only_target_is_refused_before_training(model, tmp_path, refused, monkeypatch):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, y)
    monkeypatch.setattr(
        os, "access", lambda place, mode: not mode & os.W_OK
    )  # root may write anywhere
    assert "permission is denied" in refused("train", path, "-o", tmp_path / "m", *QUICK)
    assert "permission is denied" in refused("cluster", path, "-m", model, "-o", tmp_path / "r")


def fill_disk(monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("hilander.io.writing.flush", full)


def test_a_full_disk_leaves_nothing_behind(model, tmp_path, refused, monkeypatch):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, y)
    fill_disk(monkeypatch)
    assert "disk is full" in refused("train", path, "-o", tmp_path / "deep" / "m", *QUICK)
    assert "disk is full" in refused("cluster", path, "-m", model, "-o", tmp_path / "r")
    assert "disk is full" in refused("convert", path, tmp_path / "copy.npy")


def test_a_full_disk_leaves_the_earlier_run_as_it_was(model, tmp_path, refused, monkeypatch):
    path = write(tmp_path, make_identities(n_identities=12, size=8, dim=8)[0])
    command = ["cluster", path, "-m", model, "-o", tmp_path / "run", "--quiet"]
    assert main([str(word) for word in command]) == 0
    fill_disk(monkeypatch)
    assert "disk is full" in refused(*command)


@pytest.mark.parametrize(
    "options",
    [
        ["--p-tau", "1.5"],
        ["--p-tau", "often"],
        ["--k", "0"],
        ["--val-fraction", "2"],
        ["--epochs", "0"],
        ["--learning-rate", "-1"],
        ["--encoder", "transformer"],
        ["--device", "warp"],
        ["--hidden", "1"],
    ],
)
def test_a_setting_outside_its_range_is_refused(options, tmp_path, refused):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    paper = ["--method", "paper", "--quiet"]
    refused("train", write(tmp_path, X, y), "-o", tmp_path / "m", *options, *paper)


def test_a_graph_of_other_points_is_refused(model, tmp_path, refused):
    from hilander.knn.search import build_knn_graph

    X, _ = make_identities(n_identities=12, size=8, dim=8)
    build_knn_graph(X[:50], 5).save(tmp_path / "graph.npz")
    command = ("cluster", write(tmp_path, X), "-m", model, "-o", tmp_path / "r")
    assert "50 nodes" in refused(*command, "--graph", tmp_path / "graph.npz")
    assert "its own k" in refused(*command, "--graph", tmp_path / "graph.npz", "--k", "3")


def test_thousands_of_duplicates_and_other_layouts_are_clustered(model, tmp_path):
    X, _ = make_identities(n_identities=12, size=8, dim=8)
    many = np.repeat(X, 30, axis=0)
    for number, odd in enumerate((many, np.asfortranarray(many, dtype=np.float64), many[::2])):
        path = write(tmp_path, odd)
        command = ["cluster", f"{path}", "-m", f"{model}", "-o", f"{tmp_path}/run{number}"]
        assert main([*command, "--quiet"]) == 0


def test_a_missing_level_is_refused(model, tmp_path, refused):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X, y)
    assert main(["cluster", f"{path}", "-m", f"{model}", "-o", f"{tmp_path}/r", "--quiet"]) == 0
    assert "level 99" in refused("score", tmp_path / "r", "--labels", path, "--level", "99")


def test_files_of_the_wrong_kind_are_named(model, tmp_path, refused):
    X, y = make_identities(n_identities=12, size=8, dim=8)
    path = write(tmp_path, X)
    plain, objects = tmp_path / "plain.npy", tmp_path / "objects.npy"
    np.save(plain, X)
    np.save(objects, np.array([str(one) for one in y], dtype=object), allow_pickle=True)
    run = ["-o", tmp_path / "run"]
    printed = refused("cluster", path, "-m", model, *run, "--graph", plain)
    assert "holds one array, expected .npz with the arrays neighbours and affinity" in printed
    assert "holds Python objects" in refused("train", path, *run, "--labels", objects, *QUICK)
    assert "is a file, expected a run folder; cluster it first" in refused("explore", plain)
    assert "exists already" in refused("convert", path, plain)
    np.testing.assert_array_equal(np.load(plain), X)
