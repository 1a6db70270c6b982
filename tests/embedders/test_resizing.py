"""The middle square of a picture."""

import numpy as np
import pytest
from PIL import Image

from hilander.embedders.resizing import MiddleSquare
from tests.embedders.broken_files import picture


@pytest.mark.parametrize("size", [(64, 48), (48, 64), (1, 1), (20_000, 1), (1, 20_000), (500, 500)])
def test_every_picture_gives_one_piece_of_the_size(size):
    [piece] = MiddleSquare(32, 24)(Image.new("RGB", size, "red"))
    assert piece.pixels.shape == (24, 32, 3)
    assert piece.pixels.dtype == np.uint8
    assert (piece.pixels == [255, 0, 0]).all()


def test_the_middle_is_cut_and_nothing_is_stretched():
    [piece] = MiddleSquare(40, 40)(picture(300, 100))
    assert piece.pixels[:, :18, 0].min() > 200  # the border of the colours is in the middle
    assert piece.pixels[:, 22:, 2].min() > 200
