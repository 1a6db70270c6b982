"""The commands, run in this process on small data."""

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from hilander import Hierarchy, HiLander
from hilander.cli.inputs import METHODS
from hilander.cli.main import main, make_parser
from hilander.cli.train_options import make_model
from hilander.hierarchy.decoding import merge_cut
from hilander.hierarchy.storage import load_scored_graph
from hilander.io.digests import skip_verification
from hilander.synthetic.identities import make_identities

QUICK = ["--method", "paper", "--epochs", "3", "--hidden", "8", "--quiet"]


def names(n, prefix="p"):
    return np.array([f"{prefix}{i}" for i in range(n)])


@pytest.fixture
def files(tmp_path):
    """Folder of a training and a test file with labels and ids."""
    for name, seed in (("train", 0), ("test", 1)):
        X, y = make_identities(n_identities=12, size=8, dim=8, seed=seed)
        np.savez(tmp_path / f"{name}.npz", features=X, labels=y, id=names(len(X)))
    return tmp_path


@pytest.fixture
def trained(files):
    assert main(["train", f"{files}/train.npz", "-o", f"{files}/model", *QUICK]) == 0
    return files


@pytest.fixture
def clustered(trained):
    command = ["cluster", f"{trained}/test.npz", "-m", f"{trained}/model", "-o", f"{trained}/run"]
    assert main([*command, "--quiet"]) == 0
    return trained


def test_train_writes_a_model_that_loads_and_leaves_no_checkpoint(trained):
    model = HiLander.load(trained / "model")
    assert model.n_features_in_ == 8
    assert len(json.loads((trained / "model" / "history.json").read_text())) == 3
    assert sorted(p.name for p in trained.iterdir()) == ["model", "test.npz", "train.npz"]


def test_train_matches_labels_of_another_file_by_id(files, capsys):
    with np.load(files / "train.npz") as data:
        X, y, ids = data["features"], data["labels"], data["id"]
    np.savez(files / "plain.npz", features=X, id=ids)
    order = np.random.default_rng(0).permutation(len(X))
    lines = [f"{ids[i]},person {y[i]}" for i in order]
    (files / "who.csv").write_text("\n".join(["id,name", *lines]))
    common = ["--seed", "3", *QUICK]
    labelled = ["--labels", f"{files}/who.csv", "--labels-column", "name"]
    assert main(["train", f"{files}/plain.npz", *labelled, "-o", f"{files}/a", *common]) == 0
    assert main(["train", f"{files}/train.npz", "-o", f"{files}/b", *common]) == 0
    a, b = (files / m / "weights.safetensors" for m in "ab")
    # Names sort in another order than numbers, so identities have other numbers.
    assert a.stat().st_size == b.stat().st_size
    assert HiLander.load(files / "a").summary_["n_identities"] == 12
    assert capsys.readouterr().err == ""


def test_every_option_of_train_reaches_the_model(files):
    options = (
        "--method paper --k 6 --p-tau 0.7 --whiten no --features identity --encoder convolution "
        "--hidden 6 --layers 2 "
        "--heads 1 --centre yes --epochs 2 --optimizer adamw --learning-rate 0.01 --batch-size 64 "
        "--balance --focal-gamma 2 --released-hierarchy --early-stop --seed 5 --val-fraction 0.3 "
        "--device cpu --quiet"
    )
    assert main(["train", f"{files}/train.npz", "-o", f"{files}/m", *options.split()]) == 0
    model = HiLander.load(files / "m")
    assert (model.rules_.k, model.rules_.p_tau, model.rules_.early_stop) == (6, 0.7, True)
    shape = model.network_.settings
    assert (shape.features, shape.encoder, shape.hidden) == ("identity", "convolution", 6)
    assert (shape.layers, shape.heads) == (2, 1)
    assert model.preparation_.mean is not None
    learning = model.learning
    assert (learning.epochs, learning.optimizer, learning.batch_size) == (2, "adamw", 64)
    assert learning.learning_rate == 0.01
    assert (learning.loss.balance, learning.loss.focal_gamma) == (True, 2.0)
    assert learning.as_released
    assert (model.random_state, model.val_fraction) == (5, 0.3)


def test_the_options_of_the_default_method_reach_the_model():
    options = [
        "--epochs",
        "1",
        "--hidden",
        "8",
        "--k",
        "7",
        "--batch-size",
        "64",
        "--prior",
        "none",
    ]
    model = make_model(make_parser().parse_args(["train", "x.npz", "-o", "m", *options]))
    assert (model.method, model.k, model.hidden, model.prior) == ("evidence", 7, 8, "none")
    assert (model.learning.epochs, model.learning.batch_size) == (1, 64)


def test_an_option_that_is_not_given_keeps_the_default_of_the_estimator():
    for method in METHODS:
        options = ["--method", method]
        model = make_model(make_parser().parse_args(["train", "x.npz", "-o", "m", *options]))
        given = {"method": method, "learning": model.learning, "verbose": True}
        assert model.get_params() == HiLander(**given).get_params()
        assert model.learning == type(model.learning)()


@pytest.mark.parametrize(
    ("method", "other", "option"),
    [
        ("evidence", "paper", ["--encoder", "attention"]),
        ("evidence", "paper", ["--balance"]),
        ("evidence", "paper", ["--layers", "2"]),
        ("evidence", "paper", ["--released-hierarchy"]),
        ("paper", "evidence", ["--start", "pretrained"]),
        ("paper", "evidence", ["--prior", "none"]),
    ],
)
def test_an_option_of_another_method_is_refused(method, other, option, files, capsys):
    command = ["train", f"{files}/train.npz", "-o", f"{files}/m", "--method", method]
    assert main([*command, *option]) == 2
    error = f"{option[0]} is for --method {other}, got --method {method}; leave it out"
    assert error in capsys.readouterr().err
    assert not (files / "m").exists()


def test_cluster_writes_one_row_for_each_input_with_its_id(clustered):
    table = pyarrow.parquet.read_table(clustered / "run" / "clusters.parquet")
    hierarchy = Hierarchy.load(clustered / "run")
    levels = [f"level_{n}" for n in range(hierarchy.n_levels)]
    expected = ["id", "cluster", *levels, "confidence", "density", "is_peak"]
    assert table.column_names == expected
    assert table["id"].to_pylist() == names(96).tolist()
    assert table["cluster"].to_pylist() == table[levels[-1]].to_pylist()
    model = HiLander.load(clustered / "model")
    with np.load(clustered / "test.npz") as data:
        assert table["cluster"].to_pylist() == model.predict(data["features"]).tolist()


def test_run_json_holds_input_settings_and_times(clustered):
    details = json.loads((clustered / "run" / "run.json").read_text())
    hierarchy = Hierarchy.load(clustered / "run")
    assert details["input"] == {
        "path": f"{clustered}/test.npz", "n": 96, "dim": 8, "has_ids": True
    }  # fmt: skip
    assert details["n_levels"] == hierarchy.n_levels
    assert details["n_clusters"] == [level.n_clusters for level in hierarchy.levels]
    stages = [stage["stage"] for stage in details["stages"]]
    assert stages[:3] == ["load_model", "read", "prepare"]
    assert stages[3] == "level_0"
    assert stages[-1] == "write"
    assert all(stage["seconds"] >= 0 for stage in details["stages"])
    assert set(details["versions"]) >= {"hilander", "python", "numpy", "torch"}
    assert details["settings"]["k"] == 10
    levels = [stage for stage in details["stages"] if stage["stage"].startswith("level_")]
    assert {stage["p_tau"] for stage in levels} == {details["settings"]["p_tau"]}


def test_a_run_names_the_thresholds_that_were_applied(files, capsys, monkeypatch):
    monkeypatch.setattr(merge_cut, "CUTS", (0.3,))  # what the model chooses for this set
    monkeypatch.setattr(merge_cut, "_SMALL_SET", 0)
    model = HiLander.pretrained()
    model.model_ = replace(model.model_, rules=replace(model.rules_, p_tau=0.6))
    model.save(files / "model")
    command = ["cluster", f"{files}/test.npz", "-m", f"{files}/model", "-o", f"{files}/run"]
    assert main(command) == 0
    assert "/model, p_tau 0.6, embeddings " in capsys.readouterr().out
    details = json.loads((files / "run" / "run.json").read_text())
    assert (details["settings"]["p_tau"], details["settings"]["adapt_merges"]) == (0.6, True)
    assert main(["info", f"{files}/run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["p_tau"], shown["p_tau_applied"]) == (0.6, [0.6, 0.3])


def test_the_run_keeps_the_first_graph_with_its_linkage(clustered):
    graph, scores = load_scored_graph(clustered / "run")
    hierarchy = Hierarchy.load(clustered / "run")
    parent, linkage = hierarchy.parents(0)
    linked = np.flatnonzero(parent != np.arange(96))
    assert len(linked)
    for node in linked:
        column = graph.neighbours[node].tolist().index(parent[node])
        assert scores.linkage[node, column] == linkage[node]


def test_a_graph_of_one_run_gives_the_same_run_again(clustered):
    command = ["cluster", f"{clustered}/test.npz", "-m", f"{clustered}/model", "--quiet"]
    graph = ["--graph", f"{clustered}/run/graph.npz"]
    assert main([*command, *graph, "-o", f"{clustered}/again"]) == 0
    first, again = (Hierarchy.load(clustered / name) for name in ("run", "again"))
    assert first.n_levels == again.n_levels
    assert np.array_equal(first.labels(-1), again.labels(-1))


def test_cluster_applies_k_p_tau_and_format(clustered):
    command = ["cluster", f"{clustered}/test.npz", "-m", f"{clustered}/model", "--quiet"]
    options = ["--k", "4", "--p-tau", "1", "--early-stop", "--format", "csv"]
    assert main([*command, *options, "-o", f"{clustered}/other"]) == 0
    details = json.loads((clustered / "other" / "run.json").read_text())["settings"]
    assert (details["k"], details["p_tau"], details["early_stop"]) == (4, 1.0, True)
    lines = (clustered / "other" / "clusters.csv").read_text().splitlines()
    assert len(lines) == 97
    assert lines[0].startswith("id,cluster,level_0")
    assert load_scored_graph(clustered / "other")[0].k == 4


def test_a_run_can_be_written_again_to_the_same_folder(clustered):
    command = ["cluster", f"{clustered}/test.npz", "-m", f"{clustered}/model", "--quiet"]
    assert main([*command, "-o", f"{clustered}/run", "--p-tau", "1"]) == 0
    assert json.loads((clustered / "run" / "run.json").read_text())["settings"]["p_tau"] == 1.0


def test_a_run_in_the_folder_of_another_is_announced(clustered, capsys):
    command = ["cluster", f"{clustered}/test.npz", "-m", f"{clustered}/model"]
    n_clusters = Hierarchy.load(clustered / "run").n_clusters()
    assert main([*command, "-o", f"{clustered}/new"]) == 0
    assert "replaces" not in capsys.readouterr().out
    assert main([*command, "-o", f"{clustered}/run"]) == 0
    (printed,) = (line for line in capsys.readouterr().out.splitlines() if "replaces" in line)
    assert re.fullmatch(
        rf"this run replaces an earlier one, of \d{{4}}-\d\d-\d\d \d\d:\d\d with 96 points in "
        rf"{n_clusters} clusters",
        printed,
    )
    (clustered / "run" / "run.json").write_text("{")  # damaged, or saved from Python without one
    review = clustered / "run.explorer" / "review.sqlite"
    review.parent.mkdir()
    review.write_text("mine")  # no review that can be read
    assert main([*command, "-o", f"{clustered}/run"]) == 2
    assert "is not a review database or is damaged" in capsys.readouterr().err
    command.append("--no-review")
    assert main([*command, "-o", f"{clustered}/run"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert f"this run replaces an earlier one; its review in {review.parent} is kept" in printed
    assert review.read_text() == "mine"
    assert main([*command, "-o", f"{clustered}/run", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_csv_of_embeddings_is_clustered_as_the_array_is(clustered):
    with np.load(clustered / "test.npz") as data:
        rows = [",".join(map(str, [f"00{i}", *x.tolist()])) for i, x in enumerate(data["features"])]
    header = ",".join(["photo", *(f"emb_{i}" for i in range(8))])
    (clustered / "test.csv").write_text("\n".join([header, *rows]))
    command = ["cluster", f"{clustered}/test.csv", "-m", f"{clustered}/model", "--quiet"]
    columns = ["--features-column", "emb_", "--id-column", "photo"]
    assert main([*command, *columns, "-o", f"{clustered}/again"]) == 0
    first, again = (Hierarchy.load(clustered / name) for name in ("run", "again"))
    assert np.array_equal(first.labels(-1), again.labels(-1))
    table = pyarrow.parquet.read_table(clustered / "again" / "clusters.parquet")
    assert table.column("id").to_pylist()[:2] == ["000", "001"]


def test_score_agrees_with_the_library_and_joins_labels_by_id(clustered, capsys):
    from hilander.metrics.scores import bcubed_f, nmi, pairwise_f

    hierarchy = Hierarchy.load(clustered / "run")
    with np.load(clustered / "test.npz") as data:
        y, ids = data["labels"], data["id"]
    order = np.random.default_rng(1).permutation(len(y))
    np.savez(clustered / "shuffled.npz", labels=y[order], id=ids[order])
    command = ["score", f"{clustered}/run", "--labels", f"{clustered}/shuffled.npz", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    final = hierarchy.labels(-1)
    assert found["pairwise_f"] == pairwise_f(y, final)
    assert found["bcubed_f"] == bcubed_f(y, final)
    assert found["nmi"] == nmi(y, final)
    assert found["n_clusters"] == final.max() + 1

    assert main([*command, "--level", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["bcubed_f"] == bcubed_f(y, hierarchy.labels(0))
    assert main([*command, "--all-levels"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert len(every["levels"]) == hierarchy.n_levels
    assert every["bcubed_f"] == found["bcubed_f"]


def test_score_prints_a_table(clustered, capsys):
    assert main(["score", f"{clustered}/run", "--labels", f"{clustered}/test.npz"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["name", "Fp", "Fb", "NMI"]
    assert row.startswith("final level")


@pytest.mark.filterwarnings("ignore:.*has ids, but the embeddings have none")
def test_labels_of_a_run_without_ids_are_taken_in_order(trained, capsys):
    with np.load(trained / "test.npz") as data:
        np.save(trained / "plain.npy", data["features"])
    command = ["cluster", f"{trained}/plain.npy", "-m", f"{trained}/model", "-o", f"{trained}/r"]
    assert main([*command, "--quiet"]) == 0
    assert main(["score", f"{trained}/r", "--labels", f"{trained}/test.npz", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_identities"] == 12


@pytest.mark.parametrize(
    ("name", "kind"), [("model", "model"), ("run", "run"), ("test.npz", "embeddings")]
)
def test_info_names_the_kind_of_a_path(clustered, capsys, name, kind):
    assert main(["info", f"{clustered}/{name}"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["kind", kind]
    assert main(["info", f"{clustered}/{name}", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kind"] == kind


def test_info_of_a_run_shows_one_threshold_for_each_level(clustered, capsys):
    details = json.loads((clustered / "run" / "run.json").read_text())
    tried = [stage for stage in details["stages"] if stage["stage"].startswith("level_")]
    assert len(tried) > details["n_levels"]  # the last one merged nothing
    assert main(["info", f"{clustered}/run", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["p_tau_applied"]) == len(facts["n_clusters"]) == details["n_levels"]


def test_info_of_a_run_describes_the_preparation_of_its_embeddings(clustered, capsys):
    assert main(["cluster", f"{clustered}/test.npz", "-o", f"{clustered}/run", "--quiet"]) == 0
    path = clustered / "run" / "run.json"
    details = json.loads(path.read_text())
    assert main(["info", f"{clustered}/run"]) == 0
    (line,) = (one for one in capsys.readouterr().out.splitlines() if "embeddings are" in one)
    assert details["model"]["preparation"].startswith("L2-normalised")
    assert details["model"]["preparation"] in line
    del details["model"]["preparation"]  # as in runs of early versions
    path.write_text(json.dumps(details))
    with skip_verification():
        assert main(["info", f"{clustered}/run"]) == 0
    assert "embeddings are" not in capsys.readouterr().out


def test_info_counts_the_epochs_of_one_classifier(clustered, capsys):
    from hilander.linkage.storage import PRETRAINED

    assert main(["info", f"{clustered}/model", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["epochs"] == 3
    assert "classifiers" not in facts
    assert main(["info", f"{PRETRAINED}", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    records = json.loads((PRETRAINED / "history.json").read_text())
    names = [record.get("classifier", record.get("look")) for record in records]
    points = [name for name in names if "-clusters-" not in name]
    draws = len({record.get("draw") for record in records})
    assert facts["classifiers"] == len(set(points)) > 1
    assert facts["epochs"] * facts["classifiers"] * draws == len(points)
    assert not {"draws", "relative_sizes", "set_context"} & set(facts)


def test_info_explains_settings(clustered, capsys):
    from hilander.cli.info import MEANINGS
    from hilander.linkage.storage import PRETRAINED

    for path in (clustered / "run", clustered / "model", PRETRAINED):
        assert main(["info", f"{path}"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("k ") and "neighbours of each point" in line for line in lines)
    for path in (clustered / "model", PRETRAINED):
        assert set(HiLander.load(path).network_.settings.to_dict()) <= set(MEANINGS)


def test_convert_carries_ids_and_labels_between_formats(files, capsys):
    source, there, back = (f"{files}/{n}" for n in ("test.npz", "t.parquet", "back.npz"))
    assert main(["convert", source, there]) == 0
    assert main(["convert", there, back]) == 0
    with np.load(source) as first, np.load(back) as last:
        for key in ("features", "labels", "id"):
            assert np.array_equal(first[key], last[key])
    assert main(["convert", source, f"{files}/t.npy"]) == 0
    assert "labels left out" in capsys.readouterr().err
    with np.load(source) as first:
        assert np.array_equal(np.load(files / "t.npy"), first["features"])


def test_convert_reads_pickles_of_the_paper(files):
    import pickle

    X, y = make_identities(3, 4, 5)
    (files / "data.pkl").write_bytes(pickle.dumps((X, y)))
    assert main(["convert", f"{files}/data.pkl", f"{files}/data.npz"]) == 0
    with np.load(files / "data.npz") as data:
        assert np.array_equal(data["features"], X)
        assert np.array_equal(data["labels"], y)


def test_convert_makes_a_model_of_reference_weights(files, shared_data):
    weights = shared_data / "golden" / "reference-gcn-identity.pth"
    options = ["--features", "identity", "--k-reference", "10", "--p-tau", "0.4"]
    assert main(["convert", f"{weights}", f"{files}/reference", *options]) == 0
    model = HiLander.load(files / "reference")
    assert (model.rules_.k, model.rules_.p_tau, model.rules_.as_released) == (9, 0.4, True)
    assert model.network_.settings.encoder == "convolution"


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_line_unless_quiet(files, capsys):
    X, y = make_identities(n_identities=12, size=8, dim=3)
    np.savez(files / "narrow.npz", features=X, labels=np.where(np.arange(len(X)) < 4, -1, y))
    command = ["train", f"{files}/narrow.npz", "-o", f"{files}/narrow", *QUICK]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    assert main(command[:-1]) == 0
    printed = capsys.readouterr().err.splitlines()
    assert [line for line in printed if line.startswith("hilander: warning: X has 3 features")]
    assert [line for line in printed if line.startswith("hilander: warning: 4 of 96 labels are -1")]
    assert not [line for line in printed if ".py" in line]


@pytest.mark.filterwarnings("default")
def test_repeated_ids_are_kept_with_a_warning(trained, capsys):
    with np.load(trained / "test.npz") as data:
        ids = np.where(np.arange(96) == 7, "p3", data["id"])
        np.savez(trained / "twins.npz", features=data["features"], id=ids)
    command = ["cluster", f"{trained}/twins.npz", "-m", f"{trained}/model", "-o", f"{trained}/r"]
    assert main(command) == 0
    (printed,) = capsys.readouterr().err.splitlines()
    assert "twins.npz repeats ids: 1 of 96 rows" in printed
    assert "('p3' occurs 2 times)" in printed
    table = pyarrow.parquet.read_table(trained / "r" / "clusters.parquet")
    assert table["id"].to_pylist() == ids.tolist()


def test_help_is_quick_and_imports_no_torch():
    code = (
        "import sys\nfrom hilander.cli.main import main\nassert main(['train', '--help']) == 0\n"
        "heavy = {'torch', 'sklearn', 'scipy', 'pyarrow', 'faiss', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--val-fraction" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["clutser"], ["train"], ["score", "x", "--nonsense"]])
def test_a_wrong_command_line_is_one_line_and_code_2(arguments, capsys):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("hilander: error: ")


def test_a_defect_is_one_line_and_code_1_unless_debugging(files, capsys, monkeypatch):
    def fail(path):
        raise KeyError("deep inside")

    monkeypatch.setattr("hilander.cli.info.describe", fail)
    assert main(["info", f"{files}/test.npz"]) == 1
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert "--debug" in printed
    with pytest.raises(KeyError, match="deep inside"):
        main(["info", f"{files}/test.npz", "--debug"])


def train_command(folder, model):
    options = [
        "--method",
        "paper",
        "--epochs",
        "40",
        "--hidden",
        "8",
        "--val-fraction",
        "0.3",
        "--quiet",
        "--device",
        "cpu",
    ]
    return ["train", f"{folder}/train.npz", "-o", f"{folder}/{model}", *options]


def test_training_stopped_by_ctrl_c_resumes_to_the_same_weights(files):
    # A process that was started in the background ignores Ctrl-C, and so do its children.
    handler = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = (
        f"{handler}; import sys; from hilander.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *train_command(files, "model")],
        cwd=Path(__file__).resolve().parents[2],
        stderr=subprocess.PIPE,
        text=True,
    )
    kept = files / "model.checkpoint"
    try:
        deadline = time.monotonic() + 300
        while not (kept / "validate.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=300)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, printed
    assert len(printed.splitlines()) == 1
    assert "model.checkpoint is kept" in printed
    assert not (files / "model").exists()

    assert main(train_command(files, "model")) == 0
    assert not kept.exists()
    assert main(train_command(files, "whole")) == 0
    weights = [(files / m / "weights.safetensors").read_bytes() for m in ("model", "whole")]
    assert weights[0] == weights[1]


def test_sigterm_keeps_the_work_as_ctrl_c_does_and_gives_143(files, monkeypatch, capsys):
    from hilander.learning import loop

    def terminate(*_):
        signal.raise_signal(signal.SIGTERM)

    former = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(loop, "train_epoch", terminate)
    assert main(train_command(files, "ended")) == 143
    assert "stopped" in capsys.readouterr().err
    assert not (files / "ended").exists()
    assert signal.getsignal(signal.SIGTERM) is former


def test_a_resumed_training_does_only_the_missing_epochs(files, monkeypatch):
    from hilander.learning import loop

    done = []
    train_epoch = loop.train_epoch

    def stop_at_the_fifth(*arguments):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(arguments[-1])
        return train_epoch(*arguments)

    command = ["train", f"{files}/train.npz", "-o", f"{files}/m", "--epochs", "8", "--hidden", "8"]
    command += ["--method", "paper", "--p-tau", "0.5", "--quiet"]  # nothing to choose: one training
    monkeypatch.setattr(loop, "train_epoch", stop_at_the_fifth)
    assert main(command) == 130
    done.append("stopped once")
    assert main(command) == 0
    epochs = [epoch for epoch in done if epoch != "stopped once"]
    assert epochs == list(range(8))
