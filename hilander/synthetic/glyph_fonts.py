"""Text fonts that come inside Python packages, and pictures of their characters.

Nothing is fetched: a face is a file of an installed distribution. Only the distributions of
`FONT_PACKAGES` are searched, so two machines with the ``demo`` extra draw the same pictures
whatever else is installed there.
"""

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilander.errors import SettingError

FONT_PACKAGES = (
    "matplotlib",  # DejaVu and STIX: the widest coverage
    "font-caladea",
    "font-fredoka-one",
    "font-hanken-grotesk",
    "font-intuitive",
    "font-lato",
    "font-manrope",
    "font-source-sans-pro",
    "font-source-serif-pro",
    "ttf-opensans",
)
"""Distributions whose fonts are used; `pyproject.toml` lists the same in its ``demo`` extra."""

MIN_FACES = 40  # matplotlib alone has 16: too few views, and all of two designs
INSTALL_HINT = "pip install 'hilander[demo]'"

# A text face writes these. Mathematical and symbol fonts lack them: Computer Modern, for one, has
# the ASCII letters but no accented ones.
_TEXT_PROBE = "AZaz09ÀÉñüæß"
# Draws every character of a block as one picture of the block's name.
_PLACEHOLDER_FONT = "LastResort"
_DRAWN_PX = 96  # drawn this large, then reduced: the reduction smooths what hinting would distort
_MARGIN_PX = 3  # of a thumbnail of 28; scales with its size


@dataclass(frozen=True)
class FontFace:
    """One face of a font family, such as ``Caladea-Bold``.

    Attributes
    ----------
    name : str
        File name without its ending; unique in a list of `find_fonts`.
    path : Path
        The font file.
    codepoints : frozenset of int
        Characters the face has a glyph for, its replacement box not counted.
    """

    name: str
    path: Path
    codepoints: frozenset[int] = field(repr=False)

    def covers(self, character: str) -> bool:
        """Whether the face has a glyph of its own for one character."""
        return ord(character) in self.codepoints


def find_fonts() -> list[FontFace]:
    """Text faces of the installed font packages, ordered by name.

    A family that comes as both TrueType and OpenType is taken once, as TrueType. Symbol and
    mathematical fonts, placeholders and variable fonts (whose faces are there one by one) are
    left out.

    Returns
    -------
    faces : list of FontFace

    Raises
    ------
    SettingError
        When Pillow or fontTools is missing, or too few faces are installed.
    """
    return list(_installed_faces())


@functools.lru_cache(maxsize=1)
def _installed_faces() -> tuple[FontFace, ...]:
    _import_drawing_module("PIL.ImageFont")
    files: dict[str, Path] = {}
    for path in _font_files():
        known = files.get(path.stem)
        if known is None or (known.suffix.lower() == ".otf" and path.suffix.lower() == ".ttf"):
            files[path.stem] = path
    faces = (_read_face(path) for _, path in sorted(files.items()))
    text_faces = tuple(face for face in faces if face is not None)
    if len(text_faces) < MIN_FACES:
        raise SettingError(
            f"found {len(text_faces)} font faces in the installed packages, the glyph demo needs "
            f"at least {MIN_FACES}; {INSTALL_HINT}"
        )
    return text_faces


def _font_files() -> Iterator[Path]:
    for package in FONT_PACKAGES:
        try:
            distribution = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            continue
        for file in distribution.files or ():
            if file.suffix.lower() in (".ttf", ".otf"):
                path = Path(str(distribution.locate_file(file)))
                if path.is_file():
                    yield path


def _read_face(path: Path) -> FontFace | None:
    """The face of a font file, or None if it is not one to write text with."""
    if path.stem.startswith(_PLACEHOLDER_FONT):
        return None
    with _import_drawing_module("fontTools.ttLib").TTFont(path, lazy=True) as font:
        glyph_names: dict[int, str] = font.getBestCmap() or {}
        if "fvar" in font:
            return None
    codepoints = frozenset(code for code, name in glyph_names.items() if name != ".notdef")
    if not codepoints.issuperset(map(ord, _TEXT_PROBE)):
        return None
    return FontFace(path.stem, path, codepoints)


def draw_characters(face: FontFace, characters: str, size: int = 28) -> NDArray[np.uint8]:
    """Pictures of characters, white on black, each as large as its square allows.

    The ink is cropped, scaled with its proportions kept, centred, and stretched to full contrast,
    so that views do not differ in point size, side bearings or stroke contrast.

    Parameters
    ----------
    face : FontFace
    characters : str
        One character each; a character that the face does not cover gives a blank picture.
    size : int
        Height and width of a picture, at least 8.

    Returns
    -------
    images : ndarray of shape (len(characters), size, size), uint8
        All 0 where the face has no ink for the character.
    """
    if size < 8:
        raise SettingError(f"size={size} is too small to show glyphs; use size >= 8")
    image_font = _import_drawing_module("PIL.ImageFont")
    # The basic layout is part of every Pillow; the other depends on libraries of the system.
    font = image_font.truetype(str(face.path), _DRAWN_PX, layout_engine=image_font.Layout.BASIC)
    missing = _ink(font, "\uffff")  # a noncharacter: what the face shows for what it lacks
    images = np.zeros((len(characters), size, size), dtype=np.uint8)
    for i, character in enumerate(characters):
        if not face.covers(character):
            continue
        ink = _ink(font, character)
        if ink.size and not np.array_equal(ink, missing):
            images[i] = _fit_into_square(ink, size)
    return images


def _ink(font: Any, character: str) -> NDArray[np.uint8]:
    """The glyph's pixels, cropped to its ink; of size 0 for a blank."""
    mask = font.getmask(character, mode="L")
    width, height = mask.size
    if width == 0 or height == 0:
        return np.zeros((0, 0), dtype=np.uint8)
    pixels: NDArray[np.uint8] = np.frombuffer(bytes(mask), dtype=np.uint8).reshape(height, width)
    rows, columns = np.flatnonzero(pixels.any(axis=1)), np.flatnonzero(pixels.any(axis=0))
    if not len(rows):
        return np.zeros((0, 0), dtype=np.uint8)
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _fit_into_square(ink: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    image_module = _import_drawing_module("PIL.Image")
    room = size - 2 * max(1, round(_MARGIN_PX * size / 28))
    scale = room / max(ink.shape)
    height, width = (max(1, round(length * scale)) for length in ink.shape)
    reduced = image_module.fromarray(ink).resize((width, height), image_module.Resampling.BOX)
    pixels = np.asarray(reduced, dtype=np.float32)
    square = np.zeros((size, size), dtype=np.uint8)
    top, left = (size - height) // 2, (size - width) // 2
    square[top : top + height, left : left + width] = np.rint(pixels * (255 / pixels.max()))
    return square


def _import_drawing_module(name: str) -> Any:
    # Late and by name: the rest of the library works without the demo's packages.
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingError(
            f"the glyph demo needs the module {name!r}, which is not installed; {INSTALL_HINT}"
        ) from error
