"""Image files: decoded at reduced size, cropped to a face or with the face framed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hilander.embedders.decoding import open_reduced, read_file
from hilander.embedders.skipping import SkippedItem

if TYPE_CHECKING:
    from PIL.Image import Image

Box = tuple[float, float, float, float]
# Limits of an image file, in megapixels and bytes: a hostile file must not use up the memory.
_MOST_MEGAPIXELS = 80
_MOST_BYTES = 64 * 1024 * 1024
# Of a copy of an image file: the loss cannot be seen, and a photograph takes a tenth of a PNG.
_JPEG_QUALITY = 88
# Margin around a face, as a share of its box; hair and chin are outside of a detector's box.
_MARGIN = 0.35
_FRAME_COLOUR = (255, 200, 0)


@dataclass(frozen=True, eq=False)
class OpenedImage:
    """An upright image that may have been decoded at reduced size.

    Parameters
    ----------
    image : Image
        Of mode RGB.
    reduction : float
        Width of the file over the width of `image`.
    """

    image: Image
    reduction: float

    def cropped(self, box: Box | None) -> Image:
        """The face with a margin; the whole image without a box."""
        if box is None:
            return self.image
        left, top, right, bottom = (edge / self.reduction for edge in box)
        margin = _MARGIN * max(right - left, bottom - top)
        edges = (
            max(0, round(left - margin)),
            max(0, round(top - margin)),
            min(self.image.width, round(right + margin)),
            min(self.image.height, round(bottom + margin)),
        )
        is_inside = edges[0] < edges[2] and edges[1] < edges[3]
        return self.image.crop(edges) if is_inside else self.image

    def framed(self, box: Box | None) -> Image:
        """The image with a frame around the face."""
        if box is None:
            return self.image
        from PIL import ImageDraw

        framed = self.image.copy()
        edges = [round(edge / self.reduction) for edge in box]
        if edges[0] <= edges[2] and edges[1] <= edges[3]:
            width = max(2, max(framed.size) // 300)
            ImageDraw.Draw(framed).rectangle(edges, outline=_FRAME_COLOUR, width=width)
        return framed


def open_image(path: Path, pixels: int) -> OpenedImage | None:
    """Decode an image file; None if it is no image, damaged or too large.

    Parameters
    ----------
    path : Path
    pixels : int
        The shorter side may be reduced to this size.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return OpenedImage(*open_reduced(read_file(str(path)), pixels, _MOST_MEGAPIXELS))
    except (OSError, SkippedItem):
        return None


def encode_small(image: Image, pixels: int) -> bytes:
    """Return a JPEG of an image, at most `pixels` on a side."""
    small = image.copy()
    small.thumbnail((pixels, pixels))
    stream = io.BytesIO()
    small.save(stream, "JPEG", quality=_JPEG_QUALITY)
    return stream.getvalue()
