"""The command `hilander embed`."""

import csv

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from hilander.cli.main import main
from hilander.embedders import registry
from hilander.io.files import read_embeddings
from hilander.io.item_columns import read_item_columns
from tests.embedders.fake_embedders import Corners, LetterCounts, MeanColours

FAKES = {"colours": MeanColours, "corners": Corners, "letters": LetterCounts}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch):
    """Embedders without networks; what the command asked for is kept."""

    def make(text, settings):
        FAKES["settings"] = settings
        return FAKES[text]()

    monkeypatch.setattr(registry, "make_embedder", make)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(6):
        pixels = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (folder / "bad.jpg").write_text("text")
    return folder


def embed(*arguments):
    return main(["embed", *map(str, arguments), "--workers", "0"])


def test_a_folder_of_pictures_becomes_a_file_of_embeddings(photos, tmp_path, capsys):
    output = tmp_path / "emb.parquet"
    assert embed(photos, "-o", output, "--embedder", "colours") == 0
    said = capsys.readouterr().out
    assert "6 embeddings of 7 pictures by colours (12 numbers each)" in said
    assert "1 have no embedding; the reasons are in" in said
    file = read_embeddings(output)
    assert file.features.shape == (6, 12)
    assert list(file.ids) == [f"{number}.png" for number in range(6)]
    with (tmp_path / "skipped.csv").open(newline="") as stream:
        [row] = csv.DictReader(stream)
    assert row["item"] == "bad.jpg"
    assert read_item_columns(output).folder == photos


def test_a_second_run_says_how_many_are_new(photos, tmp_path, capsys):
    output = tmp_path / "emb.parquet"
    embed(photos, "-o", output, "--embedder", "colours")
    Image.new("RGB", (9, 9)).save(photos / "new.png")
    capsys.readouterr()
    embed(photos, "-o", output, "--embedder", "colours")
    assert "7 embeddings of 8 pictures by colours (12 numbers each); 1 are new" in (
        capsys.readouterr().out
    )


def test_a_run_of_the_file_keeps_the_paths_and_the_folder_of_the_pictures(photos, tmp_path):
    output, run = tmp_path / "emb.parquet", tmp_path / "run"
    embed(photos, "-o", output, "--embedder", "corners", "--quiet")
    assert main(["cluster", str(output), "-o", str(run), "--k", "3", "--quiet"]) == 0
    items = pyarrow.parquet.read_table(run / "items.parquet")
    assert items["path"].to_pylist() == [f"{number}.png" for number in range(6) for _ in "ab"]
    assert items["box_right"].to_pylist() == [8.0] * 12
    assert str(photos) in (run / "images.json").read_text()


def test_a_table_of_texts_becomes_a_file_of_embeddings(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,text\na,hello\nb,world\n")
    output = tmp_path / "emb.parquet"
    assert embed(tmp_path / "t.csv", "-o", output, "--embedder", "letters") == 0
    assert "2 embeddings of 2 texts by letters" in capsys.readouterr().out
    table = pyarrow.parquet.read_table(output)
    assert table.select(["id", "text"]).to_pydict() == {
        "id": ["a", "b"],
        "text": ["hello", "world"],
    }


def test_what_the_user_says_reaches_the_embedder(photos, tmp_path):
    options = ["--pixels", "9", "--mean", "0.1,0.2,0.3", "--std", "1,1,1", "--download"]
    options += ["--model-output", "o", "--face-score", "0.7", "--device", "cpu"]
    embed(photos, "-o", tmp_path / "e.parquet", "--embedder", "colours", *options)
    given = FAKES["settings"]
    assert (given.pixels, given.mean, given.std) == (9, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0))
    assert given.download
    assert (given.output, given.face_score, given.device) == ("o", 0.7, "cpu")


def test_nothing_is_printed_when_quiet(photos, tmp_path, capsys):
    embed(photos, "-o", tmp_path / "e.parquet", "--embedder", "colours", "--quiet")
    assert capsys.readouterr() == ("", "")


def test_no_progress_is_drawn_without_a_terminal(photos, tmp_path, capsys):
    embed(photos, "-o", tmp_path / "e.parquet", "--embedder", "colours")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none", "-o", "e.parquet"], "none does not exist, expected pictures"),
        (["photos", "-o", "e.csv"], "e.csv cannot hold embeddings; give a name that ends in"),
        (["photos", "-o", "e.parquet", "--mean", "1,2"], "'1,2' is not three numbers"),
        (["empty", "-o", "e.parquet"], "empty holds no pictures (1 files of other kinds)"),
        (["photos", "-o", "none/e.parquet"], "none/e.parquet cannot be written"),
    ],
)
def test_wrong_input_is_one_line(photos, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("x")
    assert embed(*arguments, "--embedder", "colours", "--cache", "cache") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
