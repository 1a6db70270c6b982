"""Names of files as text."""

import os

import pytest

from hilander.io.paths import decode_name, encode_name


@pytest.mark.parametrize(
    "raw", [b"plain.jpg", "grün/日.png".encode(), b"caf\xe9.jpg", b"\xff\xfe\n.jpg", b"a\\b.jpg"]
)
def test_every_name_comes_back(raw):
    text = encode_name(os.fsdecode(raw))
    text.encode("utf-8")  # every file format can hold it
    assert os.fsencode(decode_name(text)) == raw


def test_a_name_in_utf_8_is_not_changed():
    assert encode_name("grün/日.png") == "grün/日.png"
    assert encode_name(os.fsdecode(b"caf\xe9.jpg")) == r"caf\xe9.jpg"
