"""Read the pickles of the paper's data without executing anything in them.

A pickle is a program. This reader lets it name only the functions with which numpy pickles arrays,
and replaces them by stand-ins that record their arguments. The array is then built from its bytes
by code that checks shape and type.
"""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError

_DTYPES = re.compile(r"(b1|[iu][1248]|f[248]|[US][1-9][0-9]{0,5})")


def read_pickle_arrays(
    path: str | Path,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Read a pickle that holds ``(features, labels)``.

    Parameters
    ----------
    path : str or Path
        Written by any Python and numpy, with any pickle protocol.

    Returns
    -------
    features : ndarray of shape (n_samples, n_features)
        Read-only.
    labels : ndarray of shape (n_samples,), or None
        None if the pickle holds one array only.

    Raises
    ------
    FileFormatError
        When the file is damaged, or holds anything but arrays of numbers and labels.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            content = _ArrayUnpickler(_BoundedReader(stream, size)).load()
        return _features_and_labels(content)
    except _RefusedError as error:
        raise FileFormatError(f"{path} {error}") from error
    except OSError as error:
        reason = error.strerror or error
        raise FileFormatError(f"{path} cannot be read ({reason}), expected a pickle") from error
    # A damaged program can raise any error: IndexError for a missing stack item, TypeError for a
    # wrong argument, KeyError for a wrong memo number.
    except Exception as error:
        raise FileFormatError(
            f"{path} is damaged or not a pickle ({type(error).__name__}: {error}), expected "
            "(features, labels); fetch it again or save it with numpy.savez"
        ) from error


class _RefusedError(Exception):
    """The pickle contains something that is not an array."""


class _BoundedReader:
    """A file that refuses to read more bytes than it has, before any are allocated."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size

    def read(self, n: int = -1) -> bytes:
        if n > self._size:
            raise EOFError("truncated")
        return self._stream.read(n)

    def readline(self) -> bytes:
        return self._stream.readline()

    def readinto(self, buffer: Any) -> int:
        if len(buffer) > self._size:
            raise EOFError("truncated")
        return self._stream.readinto(buffer)  # type: ignore[attr-defined,no-any-return]


class _StandIn:
    """Replaces a function that a pickle names. The pickle cannot change it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise _RefusedError("sets the state of a function, expected arrays only; do not trust it")


class _Dtype:
    """A pickled dtype: its name, then its byte order as state."""

    def __init__(self, name: Any, *_: Any) -> None:
        name = name.decode("latin1") if isinstance(name, bytes) else name
        if not isinstance(name, str) or not _DTYPES.fullmatch(name):
            raise _RefusedError(
                f"holds an array of dtype {name!r:.40}, expected numbers or text; "
                "save it with numpy.savez"
            )
        self._name = name
        self.dtype = np.dtype(name)

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        order = order.decode("latin1") if isinstance(order, bytes) else order
        if order not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise _RefusedError("holds a structured array, expected plain numbers; use numpy.savez")
        self.dtype = np.dtype(order + self._name)


class _Array:
    """A pickled array: created empty, then given shape, dtype and bytes as state."""

    def __init__(self) -> None:
        self.value: npt.NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, content = state
        self.value = _build(content, dtype, shape, "F" if is_fortran else "C")


def _build(content: Any, dtype: Any, shape: Any, order: Any) -> npt.NDArray[Any]:
    if not isinstance(dtype, _Dtype) or not isinstance(shape, tuple) or order not in ("C", "F"):
        raise _RefusedError("holds a malformed array, expected dtype and shape; fetch it again")
    if isinstance(content, str):
        content = content.encode("latin1")  # byte strings of Python 2 were decoded like this
    if not isinstance(content, bytes | bytearray):
        raise _RefusedError("holds an array of objects, expected numbers; save it with numpy.savez")
    return np.frombuffer(content, dtype=dtype.dtype).reshape(shape, order=order)


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any, *_: Any) -> _Array:
    array = _Array()
    array.value = _build(content, dtype, shape, order)
    return array


def _scalar(dtype: Any, content: Any) -> Any:
    return _build(content, dtype, (1,), "C")[0].item()


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise _RefusedError(f"encodes text as {encoding!r:.40}, expected latin1; do not trust it")
    return text.encode("latin1")


def _empty_bytes() -> bytes:
    return b""


def _stand_ins() -> dict[tuple[str, str], Callable[..., Any]]:
    table: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "ndarray"): lambda *_: _Array(),
        ("numpy", "dtype"): _Dtype,
        ("_codecs", "encode"): _encode_latin1,
        ("__builtin__", "bytes"): _empty_bytes,
        ("builtins", "bytes"): _empty_bytes,
    }
    for core in ("numpy.core", "numpy._core"):  # numpy 1 and 2
        table[f"{core}.multiarray", "_reconstruct"] = lambda *_: _Array()
        table[f"{core}.multiarray", "scalar"] = _scalar
        table[f"{core}.numeric", "_frombuffer"] = _from_buffer
    return table


# The unpickler in Python: the one in C allocates a memo of any size that the file names, so a few
# bytes could take all memory. An array is one step for both, so it is not slower.
class _ArrayUnpickler(pickle._Unpickler):
    def __init__(self, stream: _BoundedReader) -> None:
        super().__init__(stream, encoding="latin1")
        self._table = _stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        function = self._table.get((module, name))
        if function is None:
            raise _RefusedError(
                f"names {module}.{name}, expected numpy arrays only; do not trust it, or save "
                "it again as arrays with numpy.savez"
            )
        return _StandIn(function)

    def get_extension(self, code: int) -> None:
        raise _RefusedError(f"names extension {code}, expected numpy arrays only; do not trust it")


def _features_and_labels(content: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    pair = content if isinstance(content, tuple | list) else (content, None)
    if len(pair) != 2:
        raise _RefusedError(
            f"holds {len(pair)} objects, expected (features, labels); use numpy.savez"
        )
    features, labels = (item.value if isinstance(item, _Array) else item for item in pair)
    if not isinstance(features, np.ndarray) or features.ndim != 2 or features.dtype.kind in "US":
        shape = getattr(features, "shape", type(features).__name__)
        raise _RefusedError(
            f"has {shape} as features, expected an array of shape (n_samples, n_features); "
            "save it with numpy.savez"
        )
    if isinstance(labels, list | tuple):
        if not all(isinstance(label, int | float | str) for label in labels):
            raise _RefusedError("has labels that are neither numbers nor text; use numpy.savez")
        labels = np.array(labels)
    if labels is not None and not (isinstance(labels, np.ndarray) and labels.ndim <= 2):
        raise _RefusedError(
            f"has a {type(labels).__name__} as labels, expected an array; use numpy.savez"
        )
    return features, labels
