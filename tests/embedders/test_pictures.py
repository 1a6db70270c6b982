"""The pipeline of pictures: broken files, repetition, batches, kills."""

import csv
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from hilander.embedders.decoding import can_read_heif
from hilander.embedders.embedding import Destination, Source, embed
from hilander.embedders.work import EmbeddingWork
from hilander.errors import EmbeddingError
from hilander.io.paths import encode_name
from tests.embedders.broken_files import (
    EMBEDDED,
    FILES,
    OTHERS,
    SKIPPED,
    picture,
    write_broken_files,
)
from tests.embedders.fake_embedders import Corners, MeanColours


def run(source, folder, embedder, **changes):
    """Embed, and give what was written: the table, the skipped items, and the outcome."""
    work = EmbeddingWork(folder / "cache", **{"batch_size": 4, "n_workers": 0, **changes})
    destination = Destination(folder / "emb.parquet", folder / "skipped.csv")
    embedded = embed(Source([source]), destination, embedder, work)
    return pyarrow.parquet.read_table(destination.embeddings), read_skipped(folder), embedded


def read_skipped(folder):
    with (folder / "skipped.csv").open(newline="", encoding="utf-8") as stream:
        return {row["item"]: row["reason"] for row in csv.DictReader(stream)}


def write_pictures(folder, n=10, seed=0):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(n):
        pixels = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{seed}-{number:02}.png")
    return folder


@pytest.fixture
def photos(tmp_path):
    return write_pictures(tmp_path / "photos")


def test_a_bad_file_is_a_row_of_skipped_and_never_the_end(tmp_path):
    """Forty-eight written files and six of the operating system, with a worker process."""
    folder = tmp_path / "broken"
    folder.mkdir()
    write_broken_files(folder)
    table, skipped, embedded = run(folder, tmp_path, MeanColours(), n_workers=1)
    found = set(table["path"].to_pylist())
    assert len(FILES) + len(OTHERS) > 40
    for name, _, _, result in FILES:
        if name.endswith("heic") and not can_read_heif():
            continue
        assert (encode_name(name) in found) == (result == EMBEDDED), name
        assert (encode_name(name) in skipped) == (result == SKIPPED), name
    for name, _, result in OTHERS:
        assert (name in found) == (result == EMBEDDED), name
        assert (name in skipped) == (result == SKIPPED), name
    assert "folder.jpg/inside.jpg" in found
    assert embedded.outcome.n_items == len(found) + len(skipped)
    assert all(len(reason) > 8 for reason in skipped.values())


def test_the_output_has_a_row_for_each_picture_in_the_order_of_names(photos, tmp_path):
    table, skipped, _ = run(photos, tmp_path, MeanColours())
    assert table["id"].to_pylist() == sorted(path.name for path in photos.iterdir())
    assert table["path"].to_pylist() == table["id"].to_pylist()
    assert set(table["embedder"].to_pylist()) == {"colours"}
    assert set(table["embedder_version"].to_pylist()) == {"1"}
    assert not skipped


def test_workers_batches_and_the_order_of_runs_do_not_change_the_embeddings(photos, tmp_path):
    alone, _, _ = run(photos, tmp_path / "a", MeanColours())
    many, _, _ = run(photos, tmp_path / "b", MeanColours(), batch_size=3, n_workers=2)
    assert alone.equals(many)


def test_a_second_run_embeds_only_what_is_new(photos, tmp_path):
    first, _, _ = run(photos, tmp_path, MeanColours())
    write_pictures(photos, 3, seed=1)
    embedder = MeanColours()
    second, _, embedded = run(photos, tmp_path, embedder)
    assert sum(embedder.batches) == embedded.outcome.n_new == 3
    assert second.slice(0, 10).equals(first)


def test_a_renamed_or_copied_file_is_not_embedded_again(photos, tmp_path):
    run(photos, tmp_path, MeanColours())
    (photos / "0-00.png").rename(photos / "new.png")
    (photos / "copy.png").write_bytes((photos / "0-01.png").read_bytes())
    embedder = MeanColours()
    table, _, _ = run(photos, tmp_path, embedder)
    assert not embedder.batches
    assert {"new.png", "copy.png"} <= set(table["id"].to_pylist())
    assert "0-00.png" not in table["id"].to_pylist()


def test_a_file_that_changed_is_embedded_again(photos, tmp_path):
    before, _, _ = run(photos, tmp_path, MeanColours())
    picture(16, 12).save(photos / "0-03.png")
    after, _, embedded = run(photos, tmp_path, MeanColours())
    assert embedded.outcome.n_new == 1
    changed = [a != b for a, b in zip(before["embedding"], after["embedding"], strict=True)]
    assert changed == [number == 3 for number in range(10)]


def test_another_version_of_the_embedder_embeds_all_again(photos, tmp_path):
    run(photos, tmp_path, MeanColours("1"))
    _, _, embedded = run(photos, tmp_path, MeanColours("2"))
    assert embedded.outcome.n_new == 10


def test_every_face_is_a_row_with_its_photo_and_its_box_at_full_size(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    picture(640, 480).save(folder / "wide.jpg")  # decoded at an eighth: 80 x 60
    picture(30, 60).save(folder / "high.png")
    table, skipped, _ = run(folder, tmp_path, Corners())
    assert table["id"].to_pylist() == ["wide.jpg#0", "wide.jpg#1"]
    assert table["photo"].to_pylist() == ["wide.jpg"] * 2
    assert table["box_right"].to_pylist() == [64.0, 64.0]
    assert table["score"].to_pylist() == [1.0, 1.0]
    assert skipped == {"high.png": "has no face that was found"}


def test_a_photo_without_a_face_is_not_looked_at_again(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    picture(640, 480).save(folder / "wide.jpg")
    picture(30, 60).save(folder / "high.png")
    run(folder, tmp_path, Corners())
    _, skipped, embedded = run(folder, tmp_path, Corners())
    assert embedded.outcome.n_new == 0
    assert "high.png" in skipped


def test_nothing_that_can_be_embedded_is_an_error_that_names_a_reason(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"")
    with pytest.raises(EmbeddingError, match=r"not one of 1 items .*'a.jpg', which is empty"):
        run(tmp_path / "photos", tmp_path, MeanColours())
    assert read_skipped(tmp_path) == {"a.jpg": "is empty (0 bytes)"}


def test_an_embedding_that_is_not_finite_is_skipped(photos, tmp_path):
    class Half(MeanColours):
        def embed(self, batch):
            features = super().embed(batch)
            features[0] = np.nan
            return features

    table, skipped, _ = run(photos, tmp_path, Half())
    assert len(table) == 7  # one of each batch of four
    assert set(skipped.values()) == {"has an embedding with NaN or infinite values"}


def test_an_embedder_with_another_shape_is_refused(photos, tmp_path):
    class Wrong(MeanColours):
        def embed(self, batch):
            return super().embed(batch)[:, :5]

    with pytest.raises(EmbeddingError, match=r"gave shape \(4, 5\).* expected \(4, 12\)"):
        run(photos, tmp_path, Wrong())


KILLED = """
import sys, time
from pathlib import Path
from tests.embedders.fake_embedders import MeanColours
from tests.embedders.test_pictures import run
class Slow(MeanColours):
    def embed(self, batch):
        time.sleep(0.1)
        return super().embed(batch)
run(Path(sys.argv[1]), Path(sys.argv[2]), Slow(), batch_size=1)
"""


def test_a_kill_loses_nothing_that_was_embedded(tmp_path):
    photos = write_pictures(tmp_path / "photos", 40)
    (tmp_path / "cache").mkdir()
    started = subprocess.Popen(
        [sys.executable, "-c", KILLED, photos, tmp_path],
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
    )
    journal = tmp_path / "cache" / "cache.sqlite-wal"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not journal.exists() or journal.stat().st_size < 60_000):
        time.sleep(0.02)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert not (tmp_path / "emb.parquet").exists()
    table, _, embedded = run(photos, tmp_path, MeanColours())
    assert len(table) == 40
    assert 0 < embedded.outcome.n_new < 40
