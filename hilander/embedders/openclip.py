"""The embedder ``openclip:NAME``: the picture side of a CLIP model of the library OpenCLIP.

``NAME/WEIGHTS`` names its weights, as OpenCLIP calls them, or a file of weights. Without
``--download`` they come from a file or from the folder where OpenCLIP keeps what it has fetched.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from hilander.embedders.network_input import PictureNetwork, choose_normalisation, digest_network
from hilander.embedders.offline import offline_unless
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.embedders.registry import import_library
from hilander.embedders.resizing import MiddleSquare
from hilander.errors import ModelError, SettingError

_NEEDS = "install open_clip_torch and the torchvision that belongs to your torch"
# Of the pictures that OpenAI trained CLIP on; OpenCLIP uses them unless a model says otherwise.
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_STD = (0.26862954, 0.26130258, 0.27577711)


class _PictureSide(nn.Module):
    """The picture side of a model as a network of its own."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> Tensor:
        features: Tensor = self.model.encode_image(pictures)
        return features


class ClipEmbedder:
    """One embedding for each picture.

    Parameters
    ----------
    name : str
    model : nn.Module
        Of OpenCLIP.
    settings : EmbedderSettings
    """

    kind: Kind = "picture"

    def __init__(self, name: str, model: Any, settings: EmbedderSettings) -> None:
        self.name = f"openclip:{name}"
        size = model.visual.image_size
        height, width = (size, size) if isinstance(size, int) else size
        self.prepare = MiddleSquare(width, height)
        mean = tuple(getattr(model.visual, "image_mean", None) or _MEAN)
        std = tuple(getattr(model.visual, "image_std", None) or _STD)
        network = PictureNetwork(
            _PictureSide(model), choose_normalisation(settings, mean, std), settings.device
        )
        self.dim = int(model.visual.output_dim)
        self.version = f"{digest_network(model)} {self.prepare} {network.normalisation}"
        self.embed = network.embed


def make_embedder(argument: str | None, settings: EmbedderSettings) -> ClipEmbedder:
    """Create the model by its name, with its weights."""
    name, _, weights = (argument or "").partition("/")
    library = import_library("open_clip", "openclip", _NEEDS)
    known = library.list_models()
    if name not in known:
        near = [one for one in known if name.lower() in one.lower()][:3] or known[:3]
        raise SettingError(f"OpenCLIP has no model {name!r}; did you mean {', '.join(near)}?")
    if not weights:
        tags = library.list_pretrained_tags_by_model(name)
        raise SettingError(
            f"openclip:{name} has several weights; give openclip:{name}/WEIGHTS with a file or one "
            f"of {', '.join(tags) or '(none)'}"
        )
    try:
        with offline_unless(settings.download):
            model = library.create_model(name, pretrained=weights)
    except Exception as error:  # the libraries below OpenCLIP raise many types
        if settings.download:
            raise ModelError(f"OpenCLIP cannot load {argument!r} ({error}); check it") from error
        raise SettingError(
            f"the weights of openclip:{argument} are not on this machine; --download fetches them"
        ) from error
    return ClipEmbedder(argument or "", model, settings)
