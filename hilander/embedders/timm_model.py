"""The embedder ``timm:NAME``: a model of pictures of the library timm.

Without ``--download`` the weights come from the folder where timm keeps what it has fetched before.
"""

from __future__ import annotations

from typing import Any

from hilander.embedders.network_input import PictureNetwork, choose_normalisation, digest_network
from hilander.embedders.offline import offline_unless
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.embedders.registry import import_library
from hilander.embedders.resizing import MiddleSquare
from hilander.errors import ModelError, SettingError

_NEEDS = "install timm and the torchvision that belongs to your torch"


class TimmEmbedder:
    """One embedding for each picture.

    Parameters
    ----------
    name : str
    model : nn.Module
        Without its classifier.
    config : dict
        What timm says about its input: ``input_size``, ``mean``, ``std``.
    settings : EmbedderSettings
    """

    kind: Kind = "picture"

    def __init__(
        self, name: str, model: Any, config: dict[str, Any], settings: EmbedderSettings
    ) -> None:
        self.name = f"timm:{name}"
        _, height, width = config["input_size"]
        if settings.pixels is not None:
            height = width = settings.pixels
        self.prepare = MiddleSquare(width, height)
        self.dim = int(model.num_features)
        mean, std = (tuple(map(float, config[part])) for part in ("mean", "std"))
        network = PictureNetwork(
            model,
            choose_normalisation(settings, mean, std),  # type: ignore[arg-type]
            settings.device,
        )
        self.version = f"{digest_network(model)} {self.prepare} {network.normalisation}"
        self.embed = network.embed


def make_embedder(argument: str | None, settings: EmbedderSettings) -> TimmEmbedder:
    """Create the model by its name, with its weights."""
    name = argument or ""
    timm = import_library("timm", "timm", _NEEDS)
    if not timm.is_model(name):
        near = timm.list_models(f"*{name.split('.')[0]}*")[:3]
        hint = f"did you mean {', '.join(near)}?" if near else "see timm.list_models()"
        raise SettingError(f"timm has no model {name!r}; {hint}")
    try:
        with offline_unless(settings.download):
            model = timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:  # the libraries below timm raise many types
        if settings.download:
            raise ModelError(f"timm cannot load {name!r} ({error}); check the name") from error
        raise SettingError(
            f"the weights of timm:{name} are not on this machine; --download fetches them"
        ) from error
    config = timm.data.resolve_data_config({}, model=model)
    return TimmEmbedder(name, model, config, settings)
