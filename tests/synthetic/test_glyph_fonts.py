import importlib.util
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.synthetic import glyph_fonts
from hilander.synthetic.glyph_fonts import FONT_PACKAGES, FontFace, draw_characters, find_fonts

if importlib.util.find_spec("PIL") is None or importlib.util.find_spec("fontTools") is None:
    pytest.skip("needs Pillow and fontTools: the demo extra", allow_module_level=True)


@pytest.fixture(scope="module")
def faces() -> list[FontFace]:
    try:
        return find_fonts()
    except SettingError as error:
        pytest.skip(str(error))


def test_faces_come_in_order_of_their_names_and_each_name_once(faces):
    names = [face.name for face in faces]
    assert names == sorted(set(names))
    assert find_fonts() == faces


def test_every_face_writes_letters_that_differ_from_each_other(faces):
    # Symbol, mathematical and placeholder fonts would draw boxes, blanks or operators.
    letters = "ABCDEFGHKMNPRSTWXZ"
    for face in faces:
        images = draw_characters(face, letters)
        assert images.any(axis=(1, 2)).all(), face.name
        assert len(np.unique(images.reshape(len(letters), -1), axis=0)) == len(letters), face.name


def test_a_changed_list_of_faces_does_not_change_the_next_search(faces):
    find_fonts().clear()
    assert find_fonts() == faces


def test_a_character_the_face_lacks_is_blank(faces):
    for face in faces:
        assert not face.covers("\uffff")
        assert not draw_characters(face, "\uffff漢")[0].any()


def test_a_replacement_box_behind_a_code_point_is_blank(faces):
    face = next(face for face in faces if face.name == "DejaVuSans")
    lying = FontFace(face.name, face.path, face.codepoints | {0x4E00})
    assert not draw_characters(lying, "一").any()
    assert draw_characters(lying, "A").any()


def test_a_picture_fills_its_square_up_to_the_margin_and_is_centred(faces):
    for size in (16, 28, 40):
        for image in draw_characters(faces[0], "AlWg", size):
            rows, columns = image.any(axis=1).nonzero()[0], image.any(axis=0).nonzero()[0]
            height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
            assert size * 0.7 < max(height, width) < size
            assert abs(rows[0] - (size - 1 - rows[-1])) <= 1
            assert abs(columns[0] - (size - 1 - columns[-1])) <= 1
            assert image.max() == 255


def test_too_small_a_picture_is_refused(faces):
    with pytest.raises(SettingError, match=r"size=4.*use size >= 8"):
        draw_characters(faces[0], "A", size=4)


def test_no_fonts_says_what_to_install(monkeypatch):
    glyph_fonts._installed_faces.cache_clear()
    monkeypatch.setattr(glyph_fonts, "FONT_PACKAGES", ("no-such-package",))
    with pytest.raises(SettingError, match=r"found 0 font faces.*pip install 'hilander\[demo\]'"):
        find_fonts()
    glyph_fonts._installed_faces.cache_clear()


def test_a_missing_drawing_module_says_what_to_install():
    with pytest.raises(SettingError, match=r"'no_such_module'.*pip install 'hilander\[demo\]'"):
        glyph_fonts._import_drawing_module("no_such_module")


def test_the_demo_extra_lists_every_font_package():
    project = tomllib.loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    extras = project["optional-dependencies"]
    listed = {re.split(r"[<>=!~;\[ ]", entry)[0] for entry in extras["demo"] + extras["plots"]}
    assert set(FONT_PACKAGES) <= listed
    assert {"pillow", "fonttools"} <= listed
