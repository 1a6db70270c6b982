"""Find faces with dlib and cut each out, upright and of one size. It runs in worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.embedders.protocol import Piece
from hilander.io.item_columns import BOX_COLUMNS, SCORE

if TYPE_CHECKING:
    from PIL.Image import Image

# Side and margin of an aligned face; dlib's network was trained on these.
FACE_PIXELS = 150
_MARGIN = 0.25
# The detector finds faces of 80 pixels and more. A picture is resized so that its longer side has
# this many pixels, but at most doubled, so faces of a twentieth of that side are found.
_DETECTION_PIXELS = 1600
_MOST_ENLARGED = 2.0
# Of a large photo, for aligned faces that are sharp: the side of 30 faces next to each other.
_LEAST_SIDE = 2400
# Score of the detector from which on a box is a face. At 0 about every tenth one is not.
DEFAULT_SCORE = 0.3


@dataclass(frozen=True)
class FaceAlignment:
    """Gives an aligned face for each face of a picture.

    Attributes
    ----------
    landmarks : Path
        dlib's predictor of five points of a face.
    score : float
        Lowest score of a face.
    """

    landmarks: Path
    score: float = DEFAULT_SCORE

    @property
    def least_side(self) -> int:
        """Shorter side in pixels that is enough."""
        return _LEAST_SIDE

    def __call__(self, picture: Image) -> list[Piece]:
        """Give a piece for each face, the highest score first."""
        import dlib

        pixels = np.asarray(picture, dtype=np.uint8)
        scale = min(_MOST_ENLARGED, _DETECTION_PIXELS / max(picture.size))
        size = tuple(max(1, round(side * scale)) for side in picture.size)
        resized = np.asarray(picture.resize(size), dtype=np.uint8)
        found, scores, _ = _open_detector().run(resized, 0, self.score)
        predictor = _open_predictor(str(self.landmarks))
        pieces = []
        for box, score in zip(found, scores, strict=True):
            edges = [
                edge / scale for edge in (box.left(), box.top(), box.right() + 1, box.bottom() + 1)
            ]
            rectangle = dlib.rectangle(*(round(edge) for edge in edges))
            aligned = dlib.get_face_chip(
                pixels, predictor(pixels, rectangle), size=FACE_PIXELS, padding=_MARGIN
            )
            inside = np.clip(edges, 0, [*picture.size, *picture.size])
            facts = dict(zip(BOX_COLUMNS, map(float, inside), strict=True))
            pieces.append(Piece(aligned, {**facts, SCORE: float(score)}))
        return pieces


@cache
def _open_detector() -> Any:
    import dlib

    return dlib.get_frontal_face_detector()


@cache
def _open_predictor(path: str) -> Any:
    import dlib

    return dlib.shape_predictor(path)
