"""Decode a picture file of any kind to upright red, green and blue of 8 bits."""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.embedders.skipping import SkippedItem

if TYPE_CHECKING:
    from PIL.Image import Image

# Decoders of Pillow that are used. Those that start other programs (EPS) or recognise no beginning
# of a file (TGA) are left out.
FORMATS = (
    "JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF", "HEIF",
    "ICO", "PSD",
)  # fmt: skip
SUFFIXES = frozenset((
    ".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib",
    ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".j2k", ".avif", ".heic", ".heif",
    ".hif", ".ico", ".psd",
))  # fmt: skip
# A decoded picture takes three bytes a pixel, so one worker takes at most about 1.5 GB.
MOST_MEGAPIXELS = 250
MOST_BYTES = 1 << 30
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_LETTERS_SHOWN = 12


def read_file(path: str) -> bytes:
    """Read the whole of a regular file.

    Raises
    ------
    SkippedItem
        When it cannot be read, is empty, too large, or not a regular file.
    """
    try:
        # A pipe that takes the place of the file must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as stream:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise SkippedItem("is not a regular file", lasting=False)
            if facts.st_size > MOST_BYTES:
                raise SkippedItem(
                    f"has {facts.st_size / 2**30:.1f} GiB, more than the limit of "
                    f"{MOST_BYTES >> 30} GiB",
                    lasting=False,
                )
            content = stream.read()
    except OSError as error:
        raise SkippedItem(f"cannot be read: {error.strerror or error}", lasting=False) from error
    if not content:
        raise SkippedItem("is empty (0 bytes)")
    return content


def open_picture(content: bytes) -> Image:
    """Decode a picture at full size.

    The first frame of an animation is used. The EXIF rotation is applied. Transparent parts are
    white. 16-bit and floating-point greys are scaled to 8 bits.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    picture : Image
        Of mode RGB.

    Raises
    ------
    SkippedItem
        When it is not a picture, damaged, or too large.
    """
    return open_reduced(content, 0)[0]


def open_reduced(
    content: bytes, least_side: int, most_megapixels: float = MOST_MEGAPIXELS
) -> tuple[Image, float]:
    """Decode a picture, at reduced size where that is quicker.

    Parameters
    ----------
    content : bytes
        The file.
    least_side : int
        A JPEG may be decoded at a half, a quarter or an eighth of its size, as long as its shorter
        side is not less than this; 0 for full size.
    most_megapixels : float
        A picture that would be decoded to more is refused.

    Returns
    -------
    picture : Image
        As `open_picture` gives it.
    reduction : float, 1 or more
        Full width over the width of `picture`.
    """
    from PIL import ImageOps

    try:
        with _open(content) as picture:
            width, height = picture.size
            if least_side:
                scale = least_side / max(1, min(width, height))
                picture.draft("RGB", (round(width * scale), round(height * scale)))
            if picture.width * picture.height > most_megapixels * 1e6:
                raise SkippedItem(
                    f"has {width * height / 1e6:,.0f} megapixels ({width} x {height}), more than "
                    f"the limit of {most_megapixels:g}"
                )
            picture.load()
            reduction = width / picture.width
            return _to_rgb(ImageOps.exif_transpose(picture)), reduction
    except SkippedItem:
        raise
    except MemoryError as error:
        raise SkippedItem("is too large for the memory", lasting=False) from error
    except Exception as error:  # Pillow's decoders raise many types on damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SkippedItem(f"is damaged: {reason}") from error


@contextmanager
def own_limits() -> Iterator[None]:
    """Lift Pillow's limit of pixels, which is below `MOST_MEGAPIXELS`, and silence its warnings."""
    from PIL import Image

    former = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = former


def can_read_heif() -> bool:
    """Whether HEIC files can be decoded; registers the decoder."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def _open(content: bytes) -> Image:
    from PIL import Image, UnidentifiedImageError

    is_heif = content[4:8] == b"ftyp" and content[8:12] in _HEIF_BRANDS
    if is_heif and not can_read_heif():
        raise SkippedItem("is a HEIC picture: pip install 'hilander[heic]'", lasting=False)
    Image.init()
    known = [name for name in FORMATS if name in Image.OPEN]
    try:
        return Image.open(io.BytesIO(content), formats=known)
    except UnidentifiedImageError:
        if is_heif:
            raise SkippedItem("is damaged: a HEIC picture that cannot be decoded") from None
        begins = content[:_LETTERS_SHOWN].decode("ascii", "replace")
        shown = "".join(one if one.isprintable() else "?" for one in begins).replace("�", "?")
        raise SkippedItem(
            f"is not a picture of a known format (it begins with {shown!r})"
        ) from None


def _to_rgb(picture: Image) -> Image:
    """Convert any mode to RGB."""
    if picture.mode == "RGB":
        return picture
    if picture.mode.startswith(("I", "F")):
        return _scale_grey(picture)
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        from PIL import Image

        colours = picture.convert("RGBA")
        white = Image.new("RGBA", colours.size, "white")
        return Image.alpha_composite(white, colours).convert("RGB")
    return picture.convert("RGB")


def _scale_grey(picture: Image) -> Image:
    """Scale grey values of more than 8 bits to 0 to 255."""
    from PIL import Image

    values: Any = np.asarray(picture).astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, 0.0)
    low, high = float(values.min()), float(values.max())
    if picture.mode == "F":
        values = values * 255 if low >= 0 and high <= 1 else values
        low, high = float(values.min()), float(values.max())
    elif high > 255 and low >= 0 and high < 65536:
        values, low, high = values / 257, low / 257, high / 257
    if low < 0 or high > 255:
        values = (values - low) * (255 / max(high - low, 1e-12))
    return Image.fromarray(values.round().astype(np.uint8)).convert("RGB")
