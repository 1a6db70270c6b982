"""What an embedder is, and what it needs to read a picture.

An embedder is an object with four facts and one method, see `Embedder`. One for pictures also says
how a worker process prepares a picture for it, see `Preparation`. A package offers an embedder by
an entry point, see `hilander.embedders.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray

if TYPE_CHECKING:
    from PIL.Image import Image

Kind = Literal["picture", "face", "text"]
KINDS: tuple[str, ...] = ("picture", "face", "text")
# Facts in pixels; a preparation gives them for the picture that it gets.
BOX_PREFIX = "box_"


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a picture that gets one embedding: the whole of it, or a face in it.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, 3), uint8
        What `Embedder.embed` gets.
    facts : mapping of str to float
        Columns of the output for this piece, such as the score of a face. Facts whose names begin
        with ``box_`` are in pixels of the prepared picture; the output has them at full size.
    """

    pixels: npt.NDArray[np.uint8]
    facts: Mapping[str, float] = field(default_factory=dict)


class Preparation(Protocol):
    """Cuts a picture into pieces of the size that the network takes.

    It runs in worker processes, so it must be picklable and should not import torch.
    """

    @property
    def least_side(self) -> int:
        """Pixels that the shorter side must keep; a larger JPEG is decoded at reduced size."""

    def __call__(self, picture: Image) -> list[Piece]:
        """Give the pieces of an upright RGB picture; none if there is nothing to embed."""


@runtime_checkable
class Embedder(Protocol):
    """Turns pictures or texts into vectors.

    Attributes
    ----------
    name : str
        As the user gives it, such as ``objects`` or ``onnx:clip.onnx``.
    kind : "picture", "face" or "text"
        "picture" gives one embedding for a picture, "face" one for each face in it.
    dim : int
        Width of an embedding.
    version : str
        Changes whenever the same input would give another embedding: cached embeddings of another
        version are not used.
    """

    name: str
    kind: Kind
    dim: int
    version: str

    def embed(self, batch: Sequence[Any]) -> FloatArray:
        """Embed a batch.

        Parameters
        ----------
        batch : sequence of ndarray of shape (height, width, 3), uint8, or of str
            The pixels of pieces, as `prepare` gives them; or texts.

        Returns
        -------
        features : ndarray of shape (len(batch), dim), float32
        """


@runtime_checkable
class PictureEmbedder(Embedder, Protocol):
    """An embedder of the kind "picture" or "face"."""

    prepare: Preparation


@runtime_checkable
class CorpusEmbedder(Embedder, Protocol):
    """An embedder of texts that learns from all of them before it embeds any."""

    def fit(self, texts: Sequence[str]) -> None:
        """Learn from the texts; sets `dim` and `version`."""


@dataclass(frozen=True)
class EmbedderSettings:
    """What a user may say about an embedder. Each takes what concerns it.

    Attributes
    ----------
    device : str
        "auto", "cpu", "cuda" …
    download : bool
        Whether weights may be fetched from where the library gets them.
    pixels : int, optional
        Side of the picture that the network gets.
    mean, std : tuple of three floats, optional
        Normalisation of red, green and blue on the scale from 0 to 1.
    output : str, optional
        Output of an ONNX model to use.
    face_score : float, optional
        Lowest score of a face.
    """

    device: str = "auto"
    download: bool = False
    pixels: int | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    output: str | None = None
    face_score: float | None = None
