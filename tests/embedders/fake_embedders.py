"""Embedders without a network, for tests of what is around them."""

from dataclasses import dataclass

import numpy as np

from hilander.embedders.protocol import Piece
from hilander.embedders.resizing import MiddleSquare
from hilander.io.item_columns import BOX_COLUMNS, SCORE


class MeanColours:
    """The mean colour of each quarter of a picture: 12 numbers."""

    name = "colours"
    kind = "picture"
    dim = 12

    def __init__(self, version="1", prepare=None):
        self.version = version
        self.prepare = prepare or MiddleSquare(8, 8)
        self.batches = []

    def embed(self, batch):
        self.batches.append(len(batch))
        quarters = np.stack(batch).astype(np.float32).reshape(len(batch), 2, 4, 2, 4, 3)
        return quarters.mean(axis=(2, 4)).reshape(len(batch), 12) / 255 + 0.01


class Corners(MeanColours):
    """A "face" in the corner of each picture that is wider than high; none in others."""

    name = "corners"
    kind = "face"

    def __init__(self, version="1"):
        super().__init__(version, CornerPieces())


@dataclass(frozen=True)
class CornerPieces:
    least_side: int = 16

    def __call__(self, picture):
        if picture.width <= picture.height:
            return []
        facts = {**dict(zip(BOX_COLUMNS, (0.0, 0.0, 8.0, 6.0), strict=True)), SCORE: 1.0}
        pieces = MiddleSquare(8, 8)(picture.crop((0, 0, 8, 8)))
        return [Piece(pieces[0].pixels, facts)] * 2


class LetterCounts:
    """How often each letter occurs in a text."""

    name = "letters"
    kind = "text"
    dim = 26
    version = "1"

    def __init__(self):
        self.seen = []

    def embed(self, batch):
        self.seen.extend(batch)
        return np.array(
            [[text.count(chr(97 + n)) for n in range(26)] for text in batch], np.float32
        )
