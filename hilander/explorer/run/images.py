"""Thumbnails of the items: from an array, from a folder of files, or none.

What is served is always a picture drawn here. A file of the folder is decoded and encoded again,
so its bytes never reach the browser, and only files that the run lists are ever opened.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, OutputError, SettingError
from hilander.explorer.run.items import PATH_COLUMN, Items
from hilander.hierarchy.run_extras import IMAGES_FILE, THUMBS_FILE, check_thumbs
from hilander.io.writing import read_json, write_atomically

_IDS_TRIED = 100
THUMB_PIXELS = 160
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_MOST_PIXELS = 80_000_000
_MOST_BYTES = 64 * 1024 * 1024


class ImageSource(Protocol):
    """Where thumbnails come from."""

    def has(self, row: int) -> bool:
        """Whether the item should have an image."""

    def thumbnail(self, row: int) -> bytes | None:
        """Give a PNG, or None where the image is missing or cannot be read."""


class NoImages:
    """Items show their id."""

    def has(self, row: int) -> bool:
        """No item has an image."""
        return False

    def thumbnail(self, row: int) -> bytes | None:
        """Give nothing."""
        return None


class ThumbnailArray:
    """Images held in one array.

    Parameters
    ----------
    thumbs : ndarray of shape (n_points, height, width) or (n_points, height, width, 3), uint8
    """

    def __init__(self, thumbs: npt.NDArray[np.uint8]) -> None:
        self.thumbs = check_thumbs(thumbs)

    def has(self, row: int) -> bool:
        """Every item has one."""
        return 0 <= row < len(self.thumbs)

    def thumbnail(self, row: int) -> bytes | None:
        """Encode the image of a row."""
        return encode_png(np.asarray(self.thumbs[row])) if self.has(row) else None


class ImageFolder:
    """Images in files that the run lists by path.

    Parameters
    ----------
    folder : Path
        Paths are relative to it and may not lead out of it, by ``..`` or by a link.
    items : Items
        With a column of paths.
    cache : Path, optional
        Thumbnails are made once and kept here.
    """

    def __init__(self, folder: Path, items: Items, cache: Path | None = None) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.items = items
        self.cache = cache

    def has(self, row: int) -> bool:
        """Whether the run lists a path for the item."""
        return bool(self.items.path_of(row))

    def locate(self, row: int) -> Path | None:
        """Give the file of a row, or None if it is missing or not inside of the folder."""
        listed = self.items.path_of(row)
        if not listed or "\x00" in listed:
            return None
        real = Path(os.path.realpath(self.folder / listed))
        inside = real.is_relative_to(self.folder)
        return real if inside and real.is_file() else None

    def thumbnail(self, row: int) -> bytes | None:
        """Give the thumbnail of a row, from the cache if it was made before."""
        source = self.locate(row)
        if source is None:
            return None
        facts = source.stat()
        key = hashlib.sha256(
            f"{source}\0{facts.st_mtime_ns}\0{facts.st_size}".encode(errors="surrogateescape")
        ).hexdigest()
        kept = self.cache / key[:2] / f"{key}.png" if self.cache is not None else None
        if kept is not None and kept.is_file():
            return kept.read_bytes()
        made = shrink(source)
        if made is not None and kept is not None:
            try:
                kept.parent.mkdir(parents=True, exist_ok=True)
                with write_atomically(kept) as temporary:
                    temporary.write_bytes(made)
            except (OSError, OutputError):
                pass  # a full or read-only disk costs the cache, not the picture
        return made


def shrink(path: Path, pixels: int = THUMB_PIXELS) -> bytes | None:
    """Decode an image file and give it small, as PNG; None if it is no image we can read."""
    from PIL import Image, ImageOps

    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        with Image.open(path, formats=_FORMATS) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            image.draft("RGB", (pixels * 2, pixels * 2))
            upright = ImageOps.exif_transpose(image)
            small = upright.convert("RGB")
            small.thumbnail((pixels, pixels))
            stream = io.BytesIO()
            small.save(stream, "PNG")
            return stream.getvalue()
    except Exception:  # Pillow's decoders raise many kinds on damaged files
        return None


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Give an image as PNG bytes."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def open_images(
    folder: Path,
    items: Items,
    cache: Path | None,
    thumbs: str | Path | None = None,
    images_folder: str | Path | None = None,
) -> ImageSource:
    """Find the images of a run: those the user names, else those the run folder holds.

    Parameters
    ----------
    folder : Path
        The run folder.
    items : Items
    cache : Path, optional
        Where thumbnails of files are kept.
    thumbs : path, optional
        A `.npy` of images, or a `.npz` with an array ``thumbs``.
    images_folder : path, optional
        The folder that the items' paths are relative to.
    """
    if thumbs is not None:
        return _array_of(Path(thumbs), len(items))
    if images_folder is None and (folder / IMAGES_FILE).is_file():
        told = read_json(folder / IMAGES_FILE)
        images_folder = told.get("folder") if isinstance(told, dict) else None
    if images_folder is not None:
        source = ImageFolder(Path(images_folder), items, cache)
        ids_are_paths = any(source.locate(row) for row in range(min(len(items), _IDS_TRIED)))
        if PATH_COLUMN not in items.columns and not ids_are_paths:
            raise SettingError(
                f"{images_folder} holds no file named by an id, and the run lists no paths; it "
                f"needs ids that are paths, or a column {PATH_COLUMN!r} in items.parquet"
            )
        return source
    if (folder / THUMBS_FILE).is_file():
        return _array_of(folder / THUMBS_FILE, len(items))
    return NoImages()


def _array_of(path: Path, n_points: int) -> ThumbnailArray:
    try:
        loaded: Any = np.load(path, mmap_mode="r" if path.suffix == ".npy" else None)
        thumbs = loaded if path.suffix == ".npy" else loaded["thumbs"]
    except Exception as error:
        raise FileFormatError(
            f"{path} holds no thumbnails ({error}), expected a .npy of images or a .npz with an "
            "array thumbs"
        ) from error
    if len(thumbs) != n_points:
        raise FileFormatError(
            f"{path} has {len(thumbs)} images for {n_points} points; give one each"
        )
    return ThumbnailArray(thumbs)
