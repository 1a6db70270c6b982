"""Map the arrays of an uncompressed `.npz` into memory instead of reading them."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, MissingFileError

# Bytes of a ZIP local file header before the name (ZIP specification, 4.3.7).
_LOCAL_HEADER = 30


def map_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Open every array of an `.npz`. Uncompressed arrays are mapped, compressed ones are read.

    Parameters
    ----------
    path : Path

    Returns
    -------
    arrays : dict of str to ndarray

    Raises
    ------
    FileFormatError
        If the file is missing or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                entry.filename.removesuffix(".npy"): _open_member(path, archive, entry)
                for entry in archive.infolist()
                if entry.filename.endswith(".npy")
            }
    except FileNotFoundError:
        raise MissingFileError(f"{path} does not exist, expected an .npz file") from None
    except Exception as error:  # zipfile, zlib and numpy raise many types
        message = f"{path} is damaged ({error or type(error).__name__}); write the run again"
        raise FileFormatError(message) from error
    return members


def _open_member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    if entry.compress_type != zipfile.ZIP_STORED:
        with archive.open(entry) as stream:
            read: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
            return read
    with path.open("rb") as stream:
        stream.seek(entry.header_offset)
        local = stream.read(_LOCAL_HEADER)
        # The local header's name and extra field may differ in length from the directory's.
        name_length, extra_length = struct.unpack("<HH", local[26:30])
        stream.seek(entry.header_offset + _LOCAL_HEADER + name_length + extra_length)
        version = np.lib.format.read_magic(stream)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise ValueError(f"{entry.filename} holds Python objects")
        if 0 in shape or shape == ():
            stream.seek(entry.header_offset + _LOCAL_HEADER + name_length + extra_length)
            small: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
            return small
        return np.memmap(path, dtype, "r", stream.tell(), shape, order="F" if fortran else "C")
