"""The pretrained model by name, missing files, and labels of unknown identity."""

import json

import numpy as np
import pytest

from hilander import HiLander
from hilander.cli.main import main
from hilander.errors import FileFormatError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.io.files import read_embeddings, read_labels
from hilander.metrics.scores import pairwise_f
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder of a run of embeddings without ids, and of their labels."""
    folder = tmp_path_factory.mktemp("named")
    features, labels = make_identities(n_identities=30, size=6, dim=24, spread=0.9, seed=0)
    np.save(folder / "points.npy", features)
    np.save(folder / "labels.npy", labels)
    assert main(["cluster", f"{folder}/points.npy", "-o", f"{folder}/run", "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("read", [HiLander.load, Hierarchy.load, read_embeddings, read_labels])
def test_a_missing_file_is_both_a_file_not_found_and_a_file_format_error(read, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.npy does not exist, expected a") as caught:
        read(tmp_path / "gone.npy")
    assert isinstance(caught.value, FileFormatError)


def test_info_describes_the_pretrained_model_by_name(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["info", "pretrained", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "model"
    (tmp_path / "pretrained").mkdir()  # a folder of that name comes first
    assert main(["info", "pretrained"]) == 2
    assert "has no hilander.json" in capsys.readouterr().err


def test_cluster_takes_the_pretrained_model_by_name(run, capsys):
    assert main(["cluster", f"{run}/points.npy", "-m", "pretrained", "-o", f"{run}/again"]) == 0
    assert "model: pretrained" in capsys.readouterr().out
    again, before = (Hierarchy.load(run / name).labels(-1) for name in ("again", "run"))
    np.testing.assert_array_equal(again, before)


@pytest.mark.filterwarnings("default:.*has ids")
def test_ids_that_cannot_be_matched_give_a_warning(run, capsys):
    labels = np.load(run / "labels.npy")
    lines = [f"photo-{row},{label}" for row, label in enumerate(labels)]
    (run / "named.csv").write_text("id,label\n" + "\n".join(lines))
    assert main(["score", f"{run}/run", "--labels", f"{run}/named.csv"]) == 0
    assert "the embeddings have none: labels are matched by order" in capsys.readouterr().err
    assert main(["score", f"{run}/run", "--labels", f"{run}/labels.npy"]) == 0
    matched = "hilander: labels matched by row order: the input has no ids\n"
    assert capsys.readouterr().err == matched


def test_labels_that_are_all_unknown_are_refused(run, capsys):
    np.save(run / "none.npy", np.full(180, -1))
    assert main(["score", f"{run}/run", "--labels", f"{run}/none.npy"]) == 2
    assert "all 180 labels are -1, which means unknown: there is nothing" in capsys.readouterr().err


@pytest.mark.filterwarnings("default:.*labels are -1")
@pytest.mark.parametrize("every", [[], ["--all-levels"]])
def test_points_of_unknown_identity_are_not_scored(run, capsys, every):
    labels = np.load(run / "labels.npy")
    labels[::3] = -1
    np.save(run / "some.npy", labels)
    command = ["score", f"{run}/run", "--labels", f"{run}/some.npy", "--json"]
    assert main([*command, *every]) == 0
    printed = capsys.readouterr()
    assert "60 of 180 labels are -1, which means unknown" in printed.err
    found = Hierarchy.load(run / "run").labels(-1)
    expected = pairwise_f(labels[labels >= 0], found[labels >= 0])
    assert json.loads(printed.out)["pairwise_f"] == pytest.approx(expected)
    assert expected != pytest.approx(pairwise_f(labels, found))
