"""Data sets by name: glyphs, face-like embeddings, files on disk, the shared pairs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.rows import describe_circumstances, find_data, hash_file
from hilander.comparison.pair import Pair, prepare_pair
from hilander.errors import SettingError
from hilander.io.files import read_embeddings
from hilander.synthetic.face_like import PRESETS, make_face_like

Labelled = tuple[Any, Any]

SHARED = {
    "faces": ("faces-celeba-train.npz", "faces-lfw-test.npz"),
    "omniglot": ("omniglot-train.npz", "omniglot-test.npz"),
    "flowers": ("flowers-train.npz", "flowers-test.npz"),
}
# Those of the wide suite: text and objects filmed from all sides are added.
WIDE = SHARED | {
    "clinc150": ("clinc150-use-train.npz", "clinc150-use-test.npz"),
    "fruits360": ("fruits360-efl0-train.npz", "fruits360-efl0-test.npz"),
}
# Train and test presets of the face-like sets, as the paper pairs them.
FACE_LIKE = {
    "hannah": ("trillionpairs", "hannah"),
    "imdb": ("trillionpairs", "imdb"),
    "imdb-same": ("trillionpairs", "imdb-same"),
    "inat": ("inat-train", "inat"),
    "inat-different": ("inat-train", "inat-different"),
}


def load_pair(name: str) -> Pair:
    """Load a train and test pair.

    Parameters
    ----------
    name : str
        ``faces``, ``omniglot``, ``flowers``, ``clinc150`` or ``fruits360`` (shared files);
        ``glyphs``; ``face-like/hannah@0.02`` (a preset at a scale); or ``TRAIN -> TEST`` with two
        paths of .npz, .parquet or .pkl files.

    Returns
    -------
    pair : Pair
        Its name is `name`.
    """
    if name in WIDE:
        train, test = (find_data() / file for file in WIDE[name])
        return prepare_pair(name, _read(train), _read(test))
    if name == "glyphs":
        return prepare_pair(name, *_make_glyphs())
    if match := re.fullmatch(r"face-like/([a-z-]+)(?:@([0-9.]+))?", name):
        return prepare_pair(name, *_make_face_like(match[1], float(match[2] or 1)))
    if "->" in name:
        train_name, test_name = (part.strip() for part in name.split("->"))
        return prepare_pair(name, _read(Path(train_name)), _read(Path(test_name)))
    known = [*WIDE, "glyphs", *(f"face-like/{preset}@SCALE" for preset in FACE_LIKE)]
    raise SettingError(
        f"data set {name!r} is not known; use one of {', '.join(known)}, or 'TRAIN -> TEST'"
    )


def load_labelled(name: str) -> Labelled:
    """Features and labels of the training part of a shared pair or of the glyphs, unprepared."""
    if name == "glyphs":
        return _make_glyphs()[0]
    if name not in WIDE:
        raise SettingError(f"data set {name!r} is not known; use {', '.join(WIDE)} or glyphs")
    return _read(find_data() / WIDE[name][0])


def _read(path: Path) -> Labelled:
    file = read_embeddings(path)
    return file.features, file.labels


def _make_glyphs() -> tuple[Labelled, Labelled]:
    from hilander.synthetic.glyph_embedding import make_glyph_data

    data = make_glyph_data(seed=0)
    return (data.train_features, data.train_labels), (data.test_features, data.test_labels)


def _make_face_like(preset: str, scale: float) -> tuple[Labelled, Labelled]:
    if preset not in FACE_LIKE:
        raise SettingError(f"preset {preset!r} is not known; use one of {', '.join(FACE_LIKE)}")
    train, test = FACE_LIKE[preset]
    make: Callable[..., Labelled] = make_face_like
    # Train and test identities are disjoint, as in the paper: other seeds, the same embedder.
    if PRESETS[train].dim != PRESETS[test].dim:
        raise SettingError(f"presets {train} and {test} have different widths")
    return make(train, scale=scale, seed=1), make(test, scale=scale, seed=2)


def load_images(name: str) -> tuple[Any, Any]:
    """Pictures and labels of the test part of a pair that has them.

    Returns
    -------
    images : ndarray of shape (n, height, width), uint8
    labels : ndarray of shape (n,)
    """
    import numpy as np

    if name == "omniglot":
        with np.load(find_data() / SHARED[name][1]) as arrays:
            return arrays["thumbs"], arrays["labels"]
    if name == "glyphs":
        from hilander.synthetic.glyph_embedding import make_glyph_data

        data = make_glyph_data(seed=0)
        return data.test_thumbs, data.test_labels
    raise SettingError(f"data set {name!r} has no pictures; use omniglot or glyphs")


def begin_row(name: str, seed: int) -> dict[str, Any]:
    """The part that every row on the test file of a shared pair has."""
    start = {"dataset": name, "seed": seed, **describe_circumstances()}
    return start | {"dataset_hash": hash_file(find_data() / SHARED[name][1])}
