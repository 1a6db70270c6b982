"""Import of the weights that the authors' released code saves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from hilander.errors import (
    FileFormatError,
    HiLanderError,
    MissingFileError,
    ModelError,
    check_choice,
)
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import Encoder, Features, NetworkSettings

_ATTENTION_KEY = "conv.0.gcn_layer.fc.weight"
_CONVOLUTION_KEY = "conv.0.gcn_layer.mlp.weight"


def import_reference_weights(path: str | Path, features: Features) -> Lander:
    """Build a network from a reference `.pth` file.

    The file holds weights without their settings. Encoder, widths, layers and heads follow from
    the shapes; the input features of the network have to be given.

    Parameters
    ----------
    path : path of the `.pth` file
        Read with torch's `weights_only`, which runs no code from the file.
    features : {"identity", "average", "concat"}
        "concat" if the reference was run with its cluster features, else "identity".

    Returns
    -------
    network : Lander
    """
    check_choice("features", features, ("identity", "average", "concat"))
    weights = _read_state(Path(path))
    try:
        settings = read_settings(weights, features)
        network = Lander(settings)
        network.load_state_dict(rename_weights(weights, settings))
    except HiLanderError:
        raise
    except (KeyError, IndexError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip()
        message = f"{path}: the reference weights are incomplete or mis-shaped ({reason})"
        raise ModelError(f"{message}; export them again") from error
    return network.eval()


def read_reference_settings(path: str | Path) -> NetworkSettings:
    """Settings of a reference `.pth` file whose input features are not known.

    Returns
    -------
    settings : NetworkSettings
        As for identity features: `dim` is the width of the input of the first layer.
    """
    return read_settings(_read_state(Path(path)), "identity")


def _read_state(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise MissingFileError(f"{path} does not exist; give the .pth file of the reference")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileFormatError(f"{path} is not a file of torch weights ({reason})") from error
    if not isinstance(state, Mapping) or "src_mlp.weight" not in state:
        raise ModelError(f"{path} holds no reference LANDER weights (no 'src_mlp.weight' in it)")
    if odd := [key for key, value in state.items() if not isinstance(value, Tensor)]:
        raise ModelError(f"{path} holds {odd[0]!r}, which is not a tensor; expected weights only")
    return dict(state)


def read_settings(weights: Mapping[str, Tensor], features: Features) -> NetworkSettings:
    """Settings of the network, from the shapes of reference weights."""
    numbers = [int(m.group(1)) for key in weights if (m := re.match(r"conv\.(\d+)\.", key))]
    layers = 1 + max(numbers, default=0)
    encoder: Encoder
    if _ATTENTION_KEY in weights:
        encoder = "attention"
        heads, hidden = weights["conv.0.gcn_layer.attn_l"].shape[-2:]
        width = weights[_ATTENTION_KEY].shape[1]
    elif _CONVOLUTION_KEY in weights:
        encoder, heads = "convolution", 1
        hidden, double = weights[_CONVOLUTION_KEY].shape
        width = double // 2
    else:
        raise ModelError("the weights have neither an attention nor a convolution layer 'conv.0'")
    if features == "concat" and width % 2:
        raise ModelError(f"the first layer reads {width} values, not two features; use 'identity'")
    dim = width // 2 if features == "concat" else width
    return NetworkSettings(dim, features, encoder, hidden=hidden, layers=layers, heads=heads)


def rename_weights(weights: Mapping[str, Tensor], settings: NetworkSettings) -> dict[str, Tensor]:
    """Give reference weights the names and shapes of `Lander`."""
    renamed = {}
    for layer, (width_in, width_out) in enumerate(settings.layer_widths):
        theirs, ours = f"conv.{layer}.gcn_layer", f"encoder.{layer}"
        if settings.encoder == "convolution":
            renamed[f"{ours}.linear.weight"] = weights[f"{theirs}.mlp.weight"]
            renamed[f"{ours}.linear.bias"] = weights[f"{theirs}.mlp.bias"]
            continue
        shape = (settings.heads, width_out)
        renamed[f"{ours}.weight"] = weights[f"{theirs}.fc.weight"].view(*shape, width_in)
        renamed[f"{ours}.attend_source"] = weights[f"{theirs}.attn_l"].view(shape)
        renamed[f"{ours}.attend_centre"] = weights[f"{theirs}.attn_r"].view(shape)
        # The reference adds a bias inside its attention layer and another outside.
        inner, outer = weights[f"{theirs}.bias"].view(shape), weights[f"conv.{layer}.bias"]
        renamed[f"{ours}.bias"] = inner + outer
    for theirs, ours in (("src_mlp", "of_source"), ("dst_mlp", "of_centre")):
        renamed[f"linkage.{ours}.weight"] = weights[f"{theirs}.weight"]
        renamed[f"linkage.{ours}.bias"] = weights[f"{theirs}.bias"]
    prefix = "classifier_conn."
    classify = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
    return renamed | {f"linkage.classify.{key}": value for key, value in classify.items()}
