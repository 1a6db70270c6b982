"""What a torch network of pictures gets: normalised batches, on its device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hilander.arrays.rows import FloatArray
from hilander.embedders.protocol import EmbedderSettings
from hilander.embedders.versions import digest_parameters
from hilander.errors import SettingError
from hilander.learning.device import choose_device

Colour = tuple[float, float, float]
IMAGENET_MEAN: Colour = (0.485, 0.456, 0.406)
IMAGENET_STD: Colour = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Normalisation:
    """``(x / 255 - mean) / std`` for red, green and blue.

    Attributes
    ----------
    mean, std : tuple of three floats
    """

    mean: Colour = IMAGENET_MEAN
    std: Colour = IMAGENET_STD

    def __post_init__(self) -> None:
        if min(self.std) <= 0:
            raise SettingError(
                f"std {self.std} is not positive; use about 0.2 to 1 for each colour"
            )


class PictureNetwork:
    """Runs a network on batches of pixels.

    Parameters
    ----------
    network : nn.Module
        Takes (n, 3, height, width), gives (n, dim).
    normalisation : Normalisation, optional
        None to give it 0 to 255.
    device : str
    """

    def __init__(
        self, network: nn.Module, normalisation: Normalisation | None, device: str = "auto"
    ) -> None:
        self.device = choose_device(device)
        # Depthwise convolutions are faster when the channels of a pixel are together.
        self.network = network.eval().to(self.device)
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.normalisation = normalisation

    def embed(self, batch: Sequence[npt.NDArray[np.uint8]]) -> FloatArray:
        """Embed pixels.

        Parameters
        ----------
        batch : sequence of ndarray of shape (height, width, 3), uint8

        Returns
        -------
        features : ndarray of shape (n, dim), float32
        """
        pixels = torch.from_numpy(np.stack(batch)).to(self.device).permute(0, 3, 1, 2).float()
        if self.normalisation is not None:
            mean = pixels.new_tensor(self.normalisation.mean)[:, None, None] * 255
            std = pixels.new_tensor(self.normalisation.std)[:, None, None] * 255
            pixels = (pixels - mean) / std
        with torch.inference_mode():
            features: Tensor = self.network(pixels)
        found: FloatArray = features.float().cpu().numpy()
        return found


def choose_normalisation(
    settings: EmbedderSettings, mean: Colour = IMAGENET_MEAN, std: Colour = IMAGENET_STD
) -> Normalisation:
    """The normalisation that the user gives, or else that of the model."""
    return Normalisation(settings.mean or mean, settings.std or std)


def digest_network(network: nn.Module) -> str:
    """A digest of the weights of a network: a version."""
    state = network.state_dict()
    return digest_parameters([state[name].cpu().numpy().tobytes() for name in sorted(state)])
