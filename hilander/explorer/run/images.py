"""Thumbnails of the items: from an array, from a folder of image files, or none.

The server only sends images that it encoded itself. An image file is decoded and encoded again, so
its bytes never reach the browser. Only files that the run lists are opened.
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
from hilander.explorer.run.image_files import Box, encode_small, open_image
from hilander.explorer.run.items import PATH_COLUMN, Items
from hilander.hierarchy.run_extras import IMAGES_FILE, THUMBS_FILE, check_thumbs
from hilander.io.item_columns import BOX_COLUMNS
from hilander.io.paths import decode_name
from hilander.io.schemas import ImagesNote
from hilander.io.writing import list_stored_files, read_json, write_atomically

# Rows whose ids are tried as paths before an image folder is refused.
_IDS_TRIED = 100
# Longest side of a thumbnail in pixels: twice the size that the page shows, for dense screens.
THUMB_PIXELS = 320
# Longest side of an image that is shown alone: a full screen.
FULL_PIXELS = 1600
# Bytes of the hash of an image: two images of a run never share it.
_VERSION_BYTES = 12


class ImageSource(Protocol):
    """A source of thumbnails."""

    def has(self, row: int) -> bool:
        """Return whether the item is expected to have an image."""

    def version(self, row: int) -> str | None:
        """Return a hash that changes when the image of the row changes; None without an image."""

    def thumbnail(self, row: int) -> bytes | None:
        """Return a PNG or JPEG, or None if the image is missing or cannot be read."""

    def full_size(self, row: int) -> bytes | None:
        """Return a PNG or JPEG of the image, at most `FULL_PIXELS` on a side."""

    def as_array(self) -> npt.NDArray[np.uint8] | None:
        """Return all images as one array, or None if they are not held as one."""


class NoImages:
    """The run has no images; items are shown by their id."""

    def has(self, row: int) -> bool:
        """Return False."""
        return False

    def version(self, row: int) -> str | None:
        """Return None."""
        return None

    def thumbnail(self, row: int) -> bytes | None:
        """Return None."""
        return None

    def full_size(self, row: int) -> bytes | None:
        """Return None."""
        return None

    def as_array(self) -> npt.NDArray[np.uint8] | None:
        """Return None."""
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
        """Return whether the row exists; every item has an image."""
        return 0 <= row < len(self.thumbs)

    def thumbnail(self, row: int) -> bytes | None:
        """Return the image of a row as PNG."""
        return encode_png(np.asarray(self.thumbs[row])) if self.has(row) else None

    def version(self, row: int) -> str | None:
        """Return a hash of the pixels of a row."""
        if not self.has(row):
            return None
        pixels = np.ascontiguousarray(self.thumbs[row])
        return hashlib.blake2b(pixels.tobytes(), digest_size=_VERSION_BYTES).hexdigest()

    def full_size(self, row: int) -> bytes | None:
        """Return the image of a row as PNG: the run has no larger one."""
        return self.thumbnail(row)

    def as_array(self) -> npt.NDArray[np.uint8] | None:
        """Return the array."""
        return self.thumbs


class ImageFolder:
    """Images in files that the run lists by path.

    Parameters
    ----------
    folder : Path
        Paths are relative to it. A path that leads out of it, by ``..`` or a link, is refused.
    items : Items
        Gives the path of each row.
    cache : Path, optional
        Folder where thumbnails are stored, so that each is made once.
    """

    def __init__(self, folder: Path, items: Items, cache: Path | None = None) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.items = items
        self.cache = cache

    def has(self, row: int) -> bool:
        """Return whether the run lists a path for the item."""
        return bool(self.items.path_of(row))

    def locate(self, row: int) -> Path | None:
        """Return the file of a row, or None if it is missing or outside of the folder."""
        listed = self.items.path_of(row)
        if not listed or "\x00" in listed:
            return None
        # A name that is not UTF-8 is listed with escapes.
        for name in dict.fromkeys((listed, decode_name(listed))):
            real = Path(os.path.realpath(self.folder / name))
            if real.is_relative_to(self.folder) and real.is_file():
                return real
        return None

    def box_of(self, row: int) -> Box | None:
        """Return the edges of the face that a row is, in its photo; None for a whole image."""
        columns = [self.items.columns.get(name) for name in BOX_COLUMNS]
        edges = [None if column is None else column[row].as_py() for column in columns]
        left, top, right, bottom = edges
        if left is None or top is None or right is None or bottom is None:
            return None
        return float(left), float(top), float(right), float(bottom)

    def version(self, row: int) -> str | None:
        """Return a hash of the path, of the times and size of the file, and of the face's box.

        The time of the last change of the inode is one of them: a program can keep the time of
        the last change of the content, but not this one.
        """
        source = self.locate(row)
        if source is None:
            return None
        try:
            facts = source.stat()
        except OSError:
            return None
        identity = f"{source}\0{facts.st_mtime_ns}\0{facts.st_ctime_ns}\0{facts.st_size}"
        identity += "".join(f"\0{edge}" for edge in self.box_of(row) or ())
        encoded = identity.encode(errors="surrogateescape")
        return hashlib.blake2b(encoded, digest_size=_VERSION_BYTES).hexdigest()

    def full_size(self, row: int) -> bytes | None:
        """Return the image of a row, made anew each time."""
        source = self.locate(row)
        if source is None:
            return None
        photo = open_image(source, FULL_PIXELS)
        return None if photo is None else encode_small(photo.framed(self.box_of(row)), FULL_PIXELS)

    def thumbnail(self, row: int) -> bytes | None:
        """Return the thumbnail of a row, from the cache if it is there."""
        source, version = self.locate(row), self.version(row)
        if source is None or version is None:
            return None
        key = f"{version}-{THUMB_PIXELS}"
        cached = self.cache / key[:2] / f"{key}.jpg" if self.cache is not None else None
        if cached is not None and cached.is_file():
            return cached.read_bytes()
        thumbnail = make_thumbnail(source, box=self.box_of(row))
        if thumbnail is not None and cached is not None:
            try:
                cached.parent.mkdir(parents=True, exist_ok=True)
                with write_atomically(cached) as temporary:
                    temporary.write_bytes(thumbnail)
            except (OSError, OutputError):
                pass  # on a full or read-only disk the thumbnail is made again each time
        return thumbnail

    def as_array(self) -> npt.NDArray[np.uint8] | None:
        """Return None: the files have different sizes."""
        return None


def make_thumbnail(path: Path, pixels: int = THUMB_PIXELS, box: Box | None = None) -> bytes | None:
    """Return a JPEG of an image file or of a face in it; None if it is no image.

    Parameters
    ----------
    path : Path
    pixels : int
        Longest side.
    box : tuple of four floats, optional
        Edges of a face in pixels of the upright image: left, top, right, bottom.
    """
    image = open_image(path, pixels if box is None else FULL_PIXELS)
    return None if image is None else encode_small(image.cropped(box), pixels)


def encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return an image as PNG bytes."""
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
    """Open the images of a run: those that the user names, or else those of the run folder.

    Parameters
    ----------
    folder : Path
        The run folder.
    items : Items
    cache : Path, optional
        Folder where thumbnails of files are stored.
    thumbs : path, optional
        A `.npy` of images, or a `.npz` with an array ``thumbs``.
    images_folder : path, optional
        The folder that the items' paths are relative to.
    """
    if thumbs is not None:
        return _open_array(Path(thumbs), len(items))
    if images_folder is None and (folder / IMAGES_FILE).is_file():
        images_folder = read_json(list_stored_files(folder).check(IMAGES_FILE), ImagesNote)[
            "folder"
        ]
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
        return _open_array(list_stored_files(folder).check(THUMBS_FILE), len(items))
    return NoImages()


def _open_array(path: Path, n_points: int) -> ThumbnailArray:
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
