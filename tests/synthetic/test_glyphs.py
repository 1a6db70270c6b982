import importlib.util
import unicodedata

import numpy as np
import pytest

from hilander.errors import LabelError, SettingError
from hilander.synthetic.glyph_fonts import draw_characters, find_fonts
from hilander.synthetic.glyphs import (
    ALIKE_CHARACTERS,
    ALPHABETS,
    MIN_VIEWS,
    GlyphSet,
    GlyphSplit,
    alphabet_of,
    choose_distinct,
    find_characters,
    find_distinct_faces,
    make_glyphs,
    share_alike,
    split_characters,
)

if importlib.util.find_spec("PIL") is None or importlib.util.find_spec("fontTools") is None:
    pytest.skip("needs Pillow and fontTools: the demo extra", allow_module_level=True)


@pytest.fixture(scope="module")
def glyphs() -> GlyphSet:
    try:
        return make_glyphs(max_characters=150)
    except SettingError as error:
        pytest.skip(str(error))


def test_the_same_seed_gives_the_same_bits(glyphs):
    again = make_glyphs(max_characters=150)
    assert np.array_equal(again.images, glyphs.images)
    assert np.array_equal(again.ids, glyphs.ids)


def test_another_seed_gives_other_views(glyphs):
    other = make_glyphs(max_characters=150, seed=1)
    assert not np.array_equal(other.ids, glyphs.ids)


def test_no_picture_is_blank(glyphs):
    assert glyphs.images.any(axis=(1, 2)).all()
    assert glyphs.images.dtype == np.uint8
    assert glyphs.images.shape[1:] == (28, 28)


def test_every_view_is_named_once_by_its_code_point_and_face(glyphs):
    assert len(set(glyphs.ids.tolist())) == len(glyphs)
    i = len(glyphs) // 2
    assert glyphs.ids[i] == f"U+{ord(glyphs.characters[i]):04X}-{glyphs.fonts[i]}"


def test_identities_are_of_ragged_size_and_none_is_too_small(glyphs):
    _, sizes = np.unique(glyphs.characters, return_counts=True)
    assert sizes.min() >= MIN_VIEWS
    assert sizes.max() > 2 * sizes.min()


def test_every_view_is_of_a_face_that_covers_its_character(glyphs):
    faces = {face.name: face for face in find_fonts()}
    pairs = zip(glyphs.fonts.tolist(), glyphs.characters.tolist(), strict=True)
    assert all(faces[font].covers(character) for font, character in pairs)


def test_no_two_identities_look_alike_in_most_of_the_faces_they_share(glyphs):
    pixels = {}
    for font, character, image in zip(
        glyphs.fonts.tolist(), glyphs.characters.tolist(), glyphs.images, strict=True
    ):
        pixels.setdefault(font, {})[character] = image.astype(np.float64).ravel()
    same, both = {}, {}
    for drawn in pixels.values():
        names = sorted(drawn)
        rows = np.array([drawn[name] / np.linalg.norm(drawn[name]) for name in names])
        cosine = rows @ rows.T
        for i, a in enumerate(names):
            for j in range(i):
                both[names[j], a] = both.get((names[j], a), 0) + 1
                same[names[j], a] = same.get((names[j], a), 0) + int(cosine[i, j] > 0.98)
    assert not [pair for pair, count in both.items() if count >= 4 and same[pair] > 0.75 * count]


@pytest.mark.usefixtures("glyphs")  # skips without fonts
def test_the_same_shape_in_three_scripts_is_one_identity():
    faces = find_distinct_faces()
    characters = "AΑАoοоZΖQЖΨ"  # Latin, Greek and Cyrillic A; the three small o; Latin and Greek Z
    images = np.stack([draw_characters(face, characters) for face in faces])
    n_faces = images.any(axis=(2, 3)).sum(axis=0)
    kept = choose_distinct(share_alike(images, ALIKE_CHARACTERS), n_faces)
    assert "".join(characters[i] for i in kept) == "AoZQЖΨ"


def test_the_share_alike_counts_only_ways_in_which_both_were_drawn():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 256, (2, 16, 16), dtype=np.uint8)
    second[:, :8] = 0
    blank = np.zeros_like(first)
    images = np.array(
        [[first, first, blank], [first, second, blank], [first, blank, first]], dtype=np.uint8
    )
    share = share_alike(images, 0.95)
    assert share[0, 1] == share[1, 0] == 0.5
    assert share[0, 2] == 1
    assert share[1, 2] == 0
    assert np.array_equal(np.diag(share), np.ones(3))


def test_of_things_that_look_alike_the_one_of_higher_priority_is_kept():
    share = np.eye(4)
    share[0, 1] = share[1, 0] = share[2, 3] = share[3, 2] = 0.9
    assert choose_distinct(share, np.array([1, 2, 5, 5])).tolist() == [1, 2]


@pytest.mark.usefixtures("glyphs")
def test_candidates_are_letters_and_digits_that_enough_faces_cover():
    faces = find_distinct_faces()
    characters = find_characters(faces)
    assert len(characters) == len(set(characters)) > 500
    assert list(characters) == sorted(characters)
    assert set("Aß9ЖΩ") <= set(characters)
    assert not set("!-_漢") & set(characters)
    assert {alphabet_of(character) for character in characters} == set(ALPHABETS)
    assert all(unicodedata.category(character)[0] in "LN" for character in characters)


def test_no_character_is_in_two_splits_and_none_is_lost(glyphs):
    split = split_characters(glyphs.characters.tolist())
    everything = split.embedding + split.train + split.test
    assert sorted(everything) == sorted(set(glyphs.characters.tolist()))
    rows = [len(glyphs.of(part)) for part in (split.embedding, split.train, split.test)]
    assert sum(rows) == len(glyphs)


def test_upper_and_lower_case_of_a_letter_are_in_one_split():
    characters = [chr(code) for code in range(0x41, 0x530) if chr(code).isalpha()]
    characters = [c for c in characters if not 0x2B0 <= ord(c) < 0x370]
    split = split_characters(characters, seed=3)
    owner = {c: name for name in ("embedding", "train", "test") for c in getattr(split, name)}
    assert all(owner[c] == owner[c.lower()] for c in characters if c.lower() in owner)


@pytest.mark.usefixtures("glyphs")
def test_every_split_has_every_alphabet_in_its_share():
    characters = find_characters(find_distinct_faces())
    split = split_characters(characters)
    whole = [alphabet_of(character) for character in characters]
    for part, share in ((split.embedding, 0.26), (split.train, 0.37), (split.test, 0.37)):
        there = [alphabet_of(character) for character in part]
        for alphabet in ALPHABETS:
            expected = share * whole.count(alphabet)
            assert abs(there.count(alphabet) - expected) <= 2 + 0.15 * expected


def test_the_split_depends_on_the_seed_and_not_on_the_order():
    characters = [chr(code) for code in range(0x410, 0x450)]
    assert split_characters(characters) == split_characters(characters[::-1] * 2)
    assert split_characters(characters) != split_characters(characters, seed=1)


def test_a_character_of_no_alphabet_is_refused():
    with pytest.raises(SettingError, match=r"U\+6F22.*none of the alphabets"):
        split_characters(["漢"])


def test_overlapping_splits_are_refused():
    with pytest.raises(LabelError, match=r"\['b'\] are in more than one split"):
        GlyphSplit(("a",), ("b",), ("b", "c"))


def test_a_glyph_set_checks_its_lengths():
    with pytest.raises(LabelError, match=r"2 characters and 1 fonts"):
        GlyphSet(np.zeros((1, 8, 8), np.uint8), np.array(["a", "b"]), np.array(["f"]))


def test_drawing_no_characters_is_refused():
    with pytest.raises(SettingError, match="max_characters=0"):
        make_glyphs(max_characters=0)
