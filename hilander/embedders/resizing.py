"""Cut the middle of a picture and resize it to the size that a network takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hilander.embedders.protocol import Piece

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True)
class MiddleSquare:
    """The largest square in the middle of a picture, resized.

    It is cut before it is resized, so a picture of 1 x 100,000 pixels stays small.

    Attributes
    ----------
    width, height : int
        Of the result. If they differ, the largest part of that shape is cut.
    """

    width: int
    height: int

    @property
    def least_side(self) -> int:
        """Twice the size of the result: pixels are averaged, not picked."""
        return 2 * max(self.width, self.height)

    def __call__(self, picture: Image) -> list[Piece]:
        """Give one piece."""
        from PIL.Image import Resampling

        scale = min(picture.width / self.width, picture.height / self.height)
        width, height = self.width * scale, self.height * scale
        left, top = (picture.width - width) / 2, (picture.height - height) / 2
        resized = picture.resize(
            (self.width, self.height),
            Resampling.BICUBIC,
            box=(left, top, left + width, top + height),
            reducing_gap=3.0,
        )
        return [Piece(np.asarray(resized, dtype=np.uint8))]
