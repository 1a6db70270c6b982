"""JSON that hilander stored is read with a check of its form."""

import json

import msgspec
import pytest

from hilander.errors import FileFormatError
from hilander.io.stored_json import read_json


class Part(msgspec.Struct):
    size: int
    name: str | None = None


class Whole(msgspec.Struct):
    parts: list[Part]


def test_content_of_the_schema_is_given_as_it_is(tmp_path):
    content = {"parts": [{"size": 3, "further": [1.5, None]}], "more": True}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert read_json(tmp_path / "a.json", Whole) == content


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ([], "Expected `object`"),
        ({}, "missing required field `parts`"),
        ({"parts": [{"size": "3"}]}, r"Expected `int`, got `str` - at `\$.parts\[0\].size`"),
        ({"parts": [{"size": 3, "name": 4}]}, "name"),
        ({"parts": None}, "parts"),
    ],
)
def test_content_of_another_form_is_refused_with_its_place(tmp_path, content, place):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=rf"a\.json does not hold what it should.*{place}"):
        read_json(tmp_path / "a.json", Whole)


def test_deep_nesting_is_an_error_whatever_the_schema(tmp_path):
    (tmp_path / "a.json").write_text('{"parts":' + "[" * 100_000)
    with pytest.raises(FileFormatError, match="damaged"):
        read_json(tmp_path / "a.json", Whole)
