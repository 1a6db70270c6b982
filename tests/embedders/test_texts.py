"""Tables of texts."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from hilander.embedders.embedding import Destination, Source, embed
from hilander.embedders.ngrams import NgramEmbedder
from hilander.embedders.work import EmbeddingWork
from hilander.errors import FileFormatError, SettingError
from tests.embedders.fake_embedders import LetterCounts, MeanColours

TEXTS = ["where is my order", "track my parcel please", "cancel my flight", "book a flight to Rome"]


def run(source, folder, embedder, **columns):
    work = EmbeddingWork(folder / "cache", batch_size=3, n_workers=0)
    destination = Destination(folder / "emb.parquet", folder / "skipped.csv")
    embedded = embed(Source([source], **columns), destination, embedder, work)
    return pyarrow.parquet.read_table(destination.embeddings), embedded


def write(path, texts=TEXTS, **columns):
    table = {"text": list(texts), **columns}
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(table), path)
    elif path.suffix == ".jsonl":
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        path.write_text("\n".join(map(json.dumps, rows)))
    elif path.suffix == ".txt":
        path.write_text("\n".join(texts))
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        rows = [list(table), *zip(*table.values(), strict=True)]
        path.write_text("\n".join(mark.join(map(str, row)) for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".txt"])
def test_every_format_gives_the_same_embeddings(tmp_path, suffix):
    table, _ = run(write(tmp_path / f"texts{suffix}"), tmp_path, LetterCounts())
    assert table["text"].to_pylist() == TEXTS
    assert table["id"].to_pylist() == ["0", "1", "2", "3"]
    expected = [text.count("r") for text in TEXTS]
    assert [vector[ord("r") - 97] for vector in table["embedding"].to_pylist()] == expected


def test_ids_come_from_their_column(tmp_path):
    source = write(tmp_path / "t.parquet", id=["a", "b", "c", "d"], key=[9, 8, 7, 6])
    assert run(source, tmp_path, LetterCounts())[0]["id"].to_pylist() == ["a", "b", "c", "d"]
    table, _ = run(source, tmp_path, LetterCounts(), id_column="key")
    assert table["id"].to_pylist() == ["9", "8", "7", "6"]


def test_rows_without_a_text_are_skipped_with_their_reason(tmp_path):
    source = tmp_path / "t.jsonl"
    source.write_text(
        '{"text": "one"}\nnot json\n{"text": null}\n{"text": "  "}\n[1]\n{"text": 3}\n'
    )
    table, embedded = run(source, tmp_path, LetterCounts())
    assert table["text"].to_pylist() == ["one"]
    reasons = {skip.item: skip.reason for skip in embedded.outcome.skips}
    assert set(reasons) == {"1", "2", "3", "4", "5"}
    assert reasons["2"] == "has no text"
    assert reasons["3"] == "has an empty text"


def test_a_row_with_too_many_fields_is_skipped(tmp_path):
    (tmp_path / "t.csv").write_text("id,text\na,one\nb,two,three\nc,four\n")
    table, embedded = run(tmp_path / "t.csv", tmp_path, LetterCounts())
    assert table["id"].to_pylist() == ["a", "c"]
    assert embedded.outcome.skips[0].reason == "has 3 fields, expected 2"


def test_a_text_that_occurs_twice_is_embedded_once_and_a_second_run_embeds_nothing(tmp_path):
    source = write(tmp_path / "t.csv", [*TEXTS, *TEXTS])
    embedder = LetterCounts()
    table, _ = run(source, tmp_path, embedder)
    assert sorted(embedder.seen) == sorted(TEXTS)
    assert len(table) == 8
    again = LetterCounts()
    run(source, tmp_path, again)
    assert not again.seen


def test_a_table_without_a_column_of_texts_names_its_columns(tmp_path):
    (tmp_path / "t.csv").write_text("subject,answer\na,b\n")
    with pytest.raises(FileFormatError, match=r"columns subject, answer.*--text-column"):
        run(tmp_path / "t.csv", tmp_path, LetterCounts())
    with pytest.raises(FileFormatError, match=r"no column 'body'.* subject, answer"):
        run(tmp_path / "t.csv", tmp_path, LetterCounts(), text_column="body")
    table, _ = run(tmp_path / "t.csv", tmp_path, LetterCounts(), text_column="answer")
    assert table["text"].to_pylist() == ["b"]


def test_pictures_and_texts_are_not_mixed_up(tmp_path):
    source = write(tmp_path / "t.csv")
    with pytest.raises(SettingError, match="the embedder is for pictures"):
        run(source, tmp_path, MeanColours())
    with pytest.raises(SettingError, match="takes one table, got a folder"):
        run(tmp_path, tmp_path, LetterCounts())


def test_ngrams_put_texts_that_share_words_near_each_other(tmp_path):
    texts = [
        f"{verb} my {thing} now"
        for thing in ("parcel", "flight")
        for verb in ("find", "track", "move")
    ]
    table, _ = run(write(tmp_path / "t.csv", texts), tmp_path, NgramEmbedder())
    features = np.array(table["embedding"].to_pylist())
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosine = unit @ unit.T
    same = np.repeat([0, 1], 3)[:, None] == np.repeat([0, 1], 3)[None]
    same &= ~np.eye(6, dtype=bool)
    assert cosine[same].mean() > cosine[~same & ~np.eye(6, dtype=bool)].mean() + 0.2
