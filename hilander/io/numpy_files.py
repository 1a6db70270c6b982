"""Read arrays from the files of numpy, never objects."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError

AnyArray = npt.NDArray[Any]


def load_npy(source: Path) -> AnyArray:
    """The array of a ``.npy`` file, mapped."""
    _check_magic(source, b"\x93NUMPY", ".npy")
    try:
        array: AnyArray = np.load(source, mmap_mode="r", allow_pickle=False)
        return array
    except MemoryError:
        raise
    except Exception as error:  # the reader of headers raises many kinds
        if isinstance(error, ValueError) and "object" in str(error).lower():
            raise FileFormatError(
                f"{source} holds Python objects, expected numbers or text; for labels or ids, save "
                "np.array(values).astype(str)"
            ) from error
        raise FileFormatError(_damaged(source, "a .npy array of numbers", error)) from error


def load_npz(source: Path) -> dict[str, AnyArray]:
    """The arrays of a ``.npz`` file."""
    _check_magic(source, b"PK", ".npz")
    try:
        # Opened here: numpy does not close a damaged archive that it opened itself.
        with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            members = {name: arrays[name] for name in arrays.files}
    except MemoryError:
        raise
    except Exception as error:  # zipfile, zlib and the reader of headers raise many kinds
        raise FileFormatError(_damaged(source, "a .npz of plain arrays", error)) from error
    # numpy gives members that are no arrays as bytes.
    return {name: one for name, one in members.items() if isinstance(one, np.ndarray)}


def _check_magic(source: Path, magic: bytes, kind: str) -> None:
    try:
        with source.open("rb") as stream:
            head = stream.read(len(magic))
    except OSError as error:
        raise FileFormatError(_damaged(source, f"a {kind} file", error)) from error
    if head != magic:
        raise FileFormatError(
            f"{source} is not a {kind} file (it begins with {head!r}), expected one; "
            "save it with numpy or give it the right suffix"
        )


def _damaged(source: Path, expected: str, error: Exception) -> str:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return (
        f"{source} cannot be read ({reason}), expected {expected}; fetch it again or save it "
        "with numpy, without objects"
    )
