"""Model and run folders that an earlier version wrote are read, and mean what they meant."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hilander import Hierarchy, HiLander
from hilander.cli.main import main
from hilander.hierarchy.rules import DEFAULT_MERGE
from tests.goldens.partitions import hash_partition

FIXTURES = Path(__file__).parent / "fixtures"
MODELS = ("default", "whitened", "paper")
POINTS = FIXTURES / "points.npy"


def partitions_of(hierarchy):
    return [hash_partition(hierarchy.labels(level)) for level in range(hierarchy.n_levels)]


def unchanged(name, levels):
    """The levels that this version builds as the earlier one did.

    Models of the default method have the same communities of points. Their clusters merge by links.
    """
    return levels if name == "paper" else levels[:1]


@pytest.mark.parametrize("name", MODELS)
def test_a_stored_model_groups_as_it_did(name):
    model = HiLander.load(FIXTURES / f"model-{name}", device="cpu")
    found = partitions_of(model.cluster(np.load(POINTS)))
    before = partitions_of(Hierarchy.load(FIXTURES / f"run-{name}"))
    assert unchanged(name, found) == unchanged(name, before)


@pytest.mark.parametrize("name", MODELS)
def test_a_stored_model_that_is_saved_again_groups_the_same(name, tmp_path):
    model = HiLander.load(FIXTURES / f"model-{name}", device="cpu")
    again = HiLander.load(model.save(tmp_path / "again"), device="cpu")
    one, two = (partitions_of(each.cluster(np.load(POINTS))) for each in (model, again))
    assert one == two


def test_the_pretrained_model_groups_as_it_did():
    found = HiLander.pretrained(device="cpu").cluster(np.load(POINTS))
    assert partitions_of(found) == partitions_of(Hierarchy.load(FIXTURES / "run-pretrained"))


@pytest.mark.parametrize("name", [*MODELS, "pretrained"])
def test_every_command_reads_a_stored_run(name, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(FIXTURES / f"run-{name}", run)
    labels = tmp_path / "labels.npy"
    np.save(labels, Hierarchy.load(run).labels(-1))
    assert main(["info", str(run)]) == 0
    assert main(["doubts", str(run)]) == 0
    assert main(["report", str(run), "-o", str(tmp_path / "report.html"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["score", str(run), "--labels", str(labels), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bcubed_f"] == 1.0


@pytest.mark.parametrize("name", MODELS)
def test_info_describes_a_stored_model(name, capsys):
    assert main(["info", str(FIXTURES / f"model-{name}")]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", ["default", "whitened"])
def test_the_clusters_of_a_model_of_an_earlier_version_merge_by_links(name, tmp_path, capsys):
    folder = FIXTURES / f"model-{name}"
    stored = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert stored["rules"]["p_tau_merge"] != DEFAULT_MERGE
    model = HiLander.load(folder, device="cpu")
    assert model.rules_.p_tau_merge == DEFAULT_MERGE
    assert model.rules_.p_tau == stored["rules"]["p_tau"]
    assert not [key for key in model.network_.state_dict() if "clusters" in key]
    # Its scores on held-out identities are those of other merges.
    assert stored["training"]["validation"]
    assert model.summary_["validation"] == []
    assert main(["info", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert "validation_bcubed_f" not in facts
    assert facts["n_weights"] == sum(one.numel() for one in model.network_.parameters())
    # A saved one is of this version: its thresholds are kept.
    model.model_ = replace(model.model_, rules=replace(model.rules_, p_tau_merge=0.9))
    again = HiLander.load(model.save(tmp_path / "again"), device="cpu")
    assert again.rules_.p_tau_merge == 0.9


def test_a_model_of_the_published_method_keeps_its_thresholds_and_scores():
    stored = json.loads((FIXTURES / "model-paper" / "model.json").read_text(encoding="utf-8"))
    model = HiLander.load(FIXTURES / "model-paper", device="cpu")
    assert model.rules_.p_tau_merge is None
    assert model.summary_["validation"] == stored["training"]["validation"] != []


# Points, clusters, clusters of each level, threshold; of the words nothing is promised.
PRINTED = {
    "default": ["135", "15", "15", "0.68"],
    "whitened": ["135", "12", "15", "12"],
    "paper": ["135", "84", "85", "84", "0.25"],
}


@pytest.mark.parametrize("name", MODELS)
def test_a_run_prints_the_same_numbers(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(FIXTURES)
    out = tmp_path / "run"
    assert main(["cluster", "points.npy", "-m", f"model-{name}", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    told = re.sub(r" in [0-9.]+ s\b|\([^()]*else [0-9.]+\)|embeddings .*|run: .*", "", said)
    assert (
        re.findall(r"(?<![\w-])[0-9][0-9.,]*(?<![.,])", told)[: len(PRINTED[name])]
        == (PRINTED[name])
    )
    old = json.loads((FIXTURES / f"run-{name}" / "run.json").read_text(encoding="utf-8"))
    new = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert new["input"] == old["input"]
    assert unchanged(name, new["n_clusters"]) == unchanged(name, old["n_clusters"])
    for key in ("k", "p_tau", "decoder", "early_stop"):
        assert new["settings"][key] == old["settings"][key], key
    one, two = (stages_of(run, name) for run in (new, old))
    assert one == two


def stages_of(run, name):
    """The stages of the levels that are unchanged, without their times.

    In earlier versions the default method adapted the p_tau of points to each set.
    """
    left_out = ("seconds",) if name == "paper" else ("seconds", "p_tau")
    return [
        {key: value for key, value in stage.items() if not any(word in key for word in left_out)}
        for stage in run["stages"]
        if name == "paper" or not re.fullmatch("level_[1-9]", stage["stage"])
    ]
