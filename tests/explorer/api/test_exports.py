"""Exports of a review."""

import io
import json

import pyarrow.parquet as parquet
import pytest

from hilander.errors import SettingError
from hilander.explorer.api.exports import encode_columns, export_labels, export_pairs


def test_exported_text_is_never_a_formula():
    columns = {"a": ["=1+1", "+x", "-5", "@y", "plain", "-x", "1"], "n": [1, 2, -3, 4, 5, 6, 7]}
    lines = encode_columns(columns, "csv").decode().splitlines()
    assert lines[1:] == ["'=1+1,1", "'+x,2", "-5,-3", "'@y,4", "plain,5", "'-x,6", "1,7"]
    assert json.loads(encode_columns(columns, "json"))[0] == {"a": "=1+1", "n": 1}
    with pytest.raises(SettingError):
        encode_columns(columns, "xlsx")


def test_labels_and_pairs_are_exported_in_three_formats(explorer):
    explorer.act("merge", {"groups": [0, 1]})
    explorer.act("junk", {"group": 2, "junk": True})
    rows = json.loads(export_labels(explorer, "json"))
    assert parquet.read_table(io.BytesIO(export_labels(explorer, "parquet"))).to_pylist() == rows
    assert len(export_labels(explorer, "csv").decode().splitlines()) == len(rows) + 1
    labels = explorer.review.state.labels.tolist()
    assert [row["cluster"] for row in rows] == [-1 if label == 2 else label for label in labels]
    assert [pair["link"] for pair in json.loads(export_pairs(explorer, "json"))] == ["must"]
