"""Pictures of real characters in real fonts: identities and their views.

A character is an identity and a font face gives one view of it. Characters that look alike are one
identity with several code points (Latin A, Greek Α, Cyrillic А), so only one of each such group is
kept; which ones look alike is measured on the pictures, not taken from a table.
"""

import functools
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from hilander.errors import LabelError, SettingError
from hilander.synthetic.glyph_fonts import FontFace, draw_characters, find_fonts

ALPHABETS = {
    "Latin": ((0x0030, 0x0250), (0x1E00, 0x1F00)),
    "IPA": ((0x0250, 0x02B0),),
    "Greek": ((0x0370, 0x0400),),
    "Cyrillic": ((0x0400, 0x0530),),
    "Armenian": ((0x0531, 0x0588),),
    "Georgian": ((0x10D0, 0x1100),),
}
"""Half-open ranges of code points; letters and digits of these are the candidates."""

BASIC_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
MIN_VIEWS = 8
SPLIT_SHARES = {"embedding": 0.26, "train": 0.37, "test": 0.37}

# Two pictures are alike when, blurred by this, their cosine is above a bound. The bound for
# characters joins c and C, and at this size É and È, but not O and Q; the one for faces is
# stricter, since faces draw the same letters and so resemble each other more.
ALIKE_BLUR_PX = 1.0
ALIKE_CHARACTERS = 0.955
ALIKE_FACES = 0.97


@dataclass(frozen=True)
class GlyphSet:
    """Pictures of characters, one row per view, in order of the characters and then the faces.

    Attributes
    ----------
    images : ndarray of shape (n_views, size, size), uint8
        White on black.
    characters : ndarray of shape (n_views,), str
        The character of each view: its identity.
    fonts : ndarray of shape (n_views,), str
        Name of the face that drew it.
    """

    images: NDArray[np.uint8]
    characters: NDArray[np.str_]
    fonts: NDArray[np.str_]

    def __post_init__(self) -> None:
        lengths = (len(self.images), len(self.characters), len(self.fonts))
        if self.images.ndim != 3 or len(set(lengths)) != 1:
            raise LabelError(
                f"got images of shape {self.images.shape} with {lengths[1]} characters and "
                f"{lengths[2]} fonts, expected (n, size, size) and n of each; pass one per view"
            )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def ids(self) -> NDArray[np.str_]:
        """Name of each view, such as ``U+0416-Manrope-Bold``; shape (n_views,)."""
        pairs = zip(self.characters.tolist(), self.fonts.tolist(), strict=True)
        return np.array([f"U+{ord(character):04X}-{font}" for character, font in pairs], dtype=str)

    def of(self, characters: Sequence[str]) -> "GlyphSet":
        """The views of some of the characters."""
        rows = np.isin(self.characters, np.array(characters, dtype=str))
        return GlyphSet(self.images[rows], self.characters[rows], self.fonts[rows])


@dataclass(frozen=True)
class GlyphSplit:
    """Three disjoint sets of characters, each in order of their code points.

    Attributes
    ----------
    embedding : tuple of str
        Characters that the embedding is fitted on.
    train : tuple of str
        Characters that the clustering model is trained on.
    test : tuple of str
        Characters that are clustered.
    """

    embedding: tuple[str, ...]
    train: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        everything = self.embedding + self.train + self.test
        if len(set(everything)) != len(everything):
            twice = sorted({c for c in everything if everything.count(c) > 1})
            raise LabelError(
                f"characters {twice} are in more than one split, expected disjoint ones; "
                "use split_characters"
            )


def make_glyphs(size: int = 28, seed: int = 0, max_characters: int | None = None) -> GlyphSet:
    """Draw characters of several alphabets in the installed fonts.

    Each character keeps between half and all of its views, and at least `MIN_VIEWS`: identities
    are of ragged size, by how many faces cover them and by a draw.

    Parameters
    ----------
    size : int
        Height and width of a picture.
    seed : int
        Chooses the views, and the characters when there are too many; the same seed and the same
        fonts give the same bits.
    max_characters : int, optional
        Draw only a random sample of so many; those that look like others are then still dropped.

    Returns
    -------
    glyphs : GlyphSet
    """
    if max_characters is not None and max_characters < 1:
        raise SettingError(
            f"max_characters={max_characters} draws nothing; use a number from 1 on, or None"
        )
    faces = find_distinct_faces()
    rng = np.random.default_rng(seed)
    candidates = find_characters(faces)
    if max_characters is not None and max_characters < len(candidates):
        chosen = rng.choice(len(candidates), max_characters, replace=False)
        candidates = "".join(candidates[i] for i in np.sort(chosen))
    images = np.stack([draw_characters(face, candidates, size) for face in faces])
    drawn = np.asarray(images.any(axis=(2, 3)), dtype=np.bool_)  # (n_faces, n_characters)

    rows: list[tuple[int, int]] = []
    share = share_alike(images, ALIKE_CHARACTERS)
    for character in choose_distinct(share, drawn.sum(axis=0)).tolist():
        covering = np.flatnonzero(drawn[:, character])
        if len(covering) < MIN_VIEWS:
            continue  # in the fonts' tables, but some of them leave it blank
        n_views = int(rng.integers(max(MIN_VIEWS, len(covering) // 2), len(covering) + 1))
        views = rng.choice(covering, n_views, replace=False)
        rows.extend((face, character) for face in np.sort(views).tolist())
    face_of, character_of = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return GlyphSet(
        images=images[face_of, character_of],
        characters=np.array(list(candidates), dtype=str)[character_of],
        fonts=np.array([face.name for face in faces], dtype=str)[face_of],
    )


def find_distinct_faces() -> list[FontFace]:
    """Installed faces, no two alike in most of the basic letters.

    The weights of a family step so finely that, at this size, a demibold next to a bold is the
    same picture again and no other view. Of two such faces the one that covers more is kept.
    """
    return list(_distinct_faces())


@functools.lru_cache(maxsize=1)
def _distinct_faces() -> tuple[FontFace, ...]:
    faces = find_fonts()
    images = np.stack([draw_characters(face, BASIC_LETTERS) for face in faces], axis=1)
    kept = choose_distinct(
        share_alike(images, ALIKE_FACES), np.array([len(face.codepoints) for face in faces])
    )
    return tuple(faces[i] for i in kept)


def find_characters(faces: Sequence[FontFace]) -> str:
    """Letters and digits of `ALPHABETS` that at least `MIN_VIEWS` of the faces cover.

    Returns
    -------
    characters : str
        In order of their code points.
    """
    ranges = sorted(bounds for alphabet in ALPHABETS.values() for bounds in alphabet)
    candidates = (chr(code) for start, stop in ranges for code in range(start, stop))
    return "".join(
        character
        for character in candidates
        # Lu, Ll, Lo: letters but not modifiers or ligatures of title case; Nd: digits.
        if unicodedata.category(character) in ("Lu", "Ll", "Lo", "Nd")
        and sum(face.covers(character) for face in faces) >= MIN_VIEWS
    )


def choose_distinct(share: NDArray[np.float64], priority: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of items, no two alike in most of the ways that both were drawn.

    Parameters
    ----------
    share : ndarray of shape (n_things, n_things), in [0, 1]
        From `share_alike`.
    priority : ndarray of shape (n_things,)
        Of two that look alike, the one of higher priority is kept; of equals, the earlier.

    Returns
    -------
    kept : ndarray of shape (n_kept,), int64, ascending
    """
    kept: list[int] = []
    for thing in np.argsort(-priority, kind="stable").tolist():
        if not (share[thing, kept] > 0.5).any():
            kept.append(thing)
    return np.array(sorted(kept), dtype=np.int64)


def share_alike(images: NDArray[np.uint8], bound: float) -> NDArray[np.float64]:
    """Share of ways in which two things look alike, of the ways that both were drawn.

    The things are characters drawn in several faces, or faces that drew several characters.

    Parameters
    ----------
    images : ndarray of shape (n_ways, n_things, size, size)
        All 0 where a thing could not be drawn.
    bound : float
        Two blurred pictures are alike when their cosine is above it.

    Returns
    -------
    share : ndarray of shape (n_things, n_things), in [0, 1]
        Symmetric; 0 where the two were never both drawn.
    """
    n_things, size = images.shape[1], images.shape[2]
    n_alike = np.zeros((n_things, n_things), dtype=np.int64)
    n_both = np.zeros_like(n_alike)
    blur = ALIKE_BLUR_PX * size / 28
    for pictures in images:
        drawn = np.flatnonzero(pictures.any(axis=(1, 2)))
        soft = gaussian_filter(pictures[drawn].astype(np.float32), sigma=(0, blur, blur))
        soft = soft.reshape(len(drawn), size * size)  # (n_drawn, size^2)
        soft /= np.linalg.norm(soft, axis=1, keepdims=True)
        pairs = np.ix_(drawn, drawn)
        n_both[pairs] += 1
        n_alike[pairs] += soft @ soft.T > bound
    return n_alike / np.maximum(n_both, 1)


def split_characters(characters: Sequence[str], seed: int = 0) -> GlyphSplit:
    """Divide characters into those for the embedding, for training and for the test.

    Every alphabet is divided in the proportions of `SPLIT_SHARES`. Upper and lower case of a
    letter stay together: their likeness must not leak from one split into another.

    Parameters
    ----------
    characters : sequence of str
        One character each; repeats are taken once, and their order does not matter.
    seed : int

    Returns
    -------
    split : GlyphSplit
    """
    by_letter: dict[str, list[str]] = defaultdict(list)
    for character in sorted(set(characters)):
        by_letter[character.casefold()].append(character)
    # A letter is of its first member's alphabet: some capitals of Latin have their small in IPA.
    by_alphabet: dict[str, list[list[str]]] = defaultdict(list)
    for _, letter in sorted(by_letter.items()):
        by_alphabet[alphabet_of(letter[0])].append(letter)

    rng = np.random.default_rng(seed)
    bounds = np.cumsum(list(SPLIT_SHARES.values()))
    chosen: dict[str, list[str]] = {name: [] for name in SPLIT_SHARES}
    for _, letters in sorted(by_alphabet.items()):
        # Evenly spaced positions in [0, 1): each alphabet is divided in the same proportions.
        positions = (rng.permutation(len(letters)) + 0.5) / len(letters)
        owners = np.searchsorted(bounds[:-1], positions, side="right")
        for letter, owner in zip(letters, owners.tolist(), strict=True):
            chosen[list(SPLIT_SHARES)[owner]].extend(letter)
    return GlyphSplit(**{name: tuple(sorted(members)) for name, members in chosen.items()})


def alphabet_of(character: str) -> str:
    """Name of the alphabet of `ALPHABETS` that a character belongs to."""
    code = ord(character)
    for name, ranges in ALPHABETS.items():
        if any(start <= code < stop for start, stop in ranges):
            return name
    raise SettingError(
        f"{character!r} (U+{code:04X}) is of none of the alphabets {', '.join(ALPHABETS)}; "
        "use characters of find_characters"
    )
