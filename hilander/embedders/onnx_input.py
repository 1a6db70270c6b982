"""What an ONNX model of pictures takes: the layout, the size and the normalisation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.embedders.protocol import EmbedderSettings
from hilander.errors import ModelError, SettingError

# As the libraries of Hugging Face write it, next to the model.
PREPROCESSING_FILE = "preprocessor_config.json"
_TYPES: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(uint8)": np.dtype(np.uint8),
}
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class PictureInput:
    """The input of a model of pictures.

    Attributes
    ----------
    name : str
    dtype : str
    width, height : int
    channels_first : bool
        (n, 3, height, width), or else (n, height, width, 3).
    batch : int, optional
        Pictures of a batch, if the model has it fixed.
    mean, std : tuple of three floats, optional
        Normalisation on the scale from 0 to 1; None for a model of 8-bit values.
    """

    name: str
    dtype: str
    width: int
    height: int
    channels_first: bool
    batch: int | None
    mean: Colour | None
    std: Colour | None

    def convert(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """What the model gets for pixels of shape (n, height, width, 3)."""
        values: npt.NDArray[Any] = pixels
        if self.mean is not None and self.std is not None:
            mean, std = (np.array(one, np.float32) * 255 for one in (self.mean, self.std))
            values = (pixels.astype(np.float32) - mean) / std
        if self.channels_first:
            values = values.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(values, dtype=self.dtype)


def read_picture_input(path: Path, session: Any, settings: EmbedderSettings) -> PictureInput:
    """Find out what a model takes, from its input, its metadata, files beside it and the options.

    Parameters
    ----------
    path : Path
    session : onnxruntime.InferenceSession
    settings : EmbedderSettings

    Raises
    ------
    ModelError
        When it does not take pictures.
    SettingError
        When the size or the normalisation is not known, or contradicts the model.
    """
    inputs = session.get_inputs()
    shape = list(inputs[0].shape)
    if len(inputs) != 1 or len(shape) != 4 or 3 not in (shape[1], shape[3]):
        shown = ", ".join(f"{one.name} {list(one.shape)}" for one in inputs)
        raise ModelError(
            f"{path} has the inputs {shown}, expected one of shape (n, 3, height, width) or "
            "(n, height, width, 3), or texts; export the model of pictures alone"
        )
    dtype: np.dtype[Any] | None = _TYPES.get(inputs[0].type)
    if dtype is None:
        raise ModelError(
            f"{path} takes {inputs[0].type}, expected {', '.join(_TYPES)}; export it with floats"
        )
    channels_first = shape[1] == 3
    stored = _read_preprocessing(path, session)
    height, width = shape[2:] if channels_first else shape[1:3]
    height = _choose_side(path, "height", height, stored.get("size"), settings.pixels)
    width = _choose_side(path, "width", width, stored.get("size"), settings.pixels)
    mean = std = None
    if dtype != np.uint8:
        mean = settings.mean or stored.get("mean")
        std = settings.std or stored.get("std")
        if mean is None or std is None:
            raise SettingError(
                f"{path} does not say how its input is normalised; give --mean and --std on the "
                "scale from 0 to 1, such as 0.485,0.456,0.406 and 0.229,0.224,0.225 (ImageNet), "
                "0.5,0.5,0.5 twice (ArcFace), or put its preprocessor_config.json beside it"
            )
        if min(std) <= 0:
            raise SettingError(f"std {std} is not positive; use about 0.2 to 1 for each colour")
    batch = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
    return PictureInput(inputs[0].name, dtype.name, width, height, channels_first, batch, mean, std)


def _choose_side(path: Path, name: str, own: Any, stored: int | None, asked: int | None) -> int:
    """Height or width: that of the model if it is fixed, else the asked one, else the stored."""
    if isinstance(own, int) and own > 0:
        if asked is not None and asked != own:
            raise SettingError(
                f"{path} takes pictures of {name} {own}, got --pixels {asked}; leave it out"
            )
        return own
    side = asked or stored
    if side is None:
        raise SettingError(
            f"{path} takes pictures of any {name} and does not say which it was trained on; give "
            "--pixels, such as 224"
        )
    return side


def _read_preprocessing(path: Path, session: Any) -> dict[str, Any]:
    """Size, mean and std from the metadata of the model, or from the file next to it."""
    found: dict[str, Any] = {}
    metadata = session.get_modelmeta().custom_metadata_map
    try:
        for name in ("mean", "std"):
            if name in metadata:
                found[name] = _as_colour(json.loads(metadata[name]))
        if "size" in metadata:
            found["size"] = int(json.loads(metadata["size"]))
        beside = path.with_name(PREPROCESSING_FILE)
        if beside.is_file():
            found = {**_read_config(json.loads(beside.read_text("utf-8"))), **found}
    except (ValueError, TypeError, KeyError, IndexError, OSError) as error:
        raise ModelError(
            f"{path} has metadata of its input that cannot be read ({error}), expected mean and "
            "std of three numbers and a size; give --mean, --std and --pixels"
        ) from error
    return found


def _read_config(content: Any) -> dict[str, Any]:
    """Size, mean and std of a preprocessor_config.json."""
    found: dict[str, Any] = {}
    if content.get("do_normalize", True) and "image_mean" in content:
        found["mean"] = _as_colour(content["image_mean"])
        found["std"] = _as_colour(content["image_std"])
    size = content.get("crop_size", content.get("size"))
    if isinstance(size, dict):
        size = size.get("height", size.get("shortest_edge"))
    if size is not None:
        found["size"] = int(size)
    return found


def _as_colour(values: Any) -> Colour:
    red, green, blue = (float(value) for value in values)
    return red, green, blue
