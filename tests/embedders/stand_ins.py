"""Stand-ins for libraries that cannot be installed without another torch.

They have the few functions that the embedders call, with networks of random weights.
"""

import types

import torch
from torch import nn


class TinyNetwork(nn.Module):
    """The mean colour, mixed by random weights."""

    num_features = 6

    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.mixing = nn.Parameter(torch.randn(3, 6, generator=generator), requires_grad=False)

    def forward(self, pictures):
        return pictures.mean(dim=(2, 3)) @ self.mixing

    encode_image = forward


def make_timm(*, has_weights=True):
    """The library timm, with one model."""
    library = types.ModuleType("timm")
    library.calls = []

    def create_model(name, pretrained, num_classes):
        library.calls.append((name, pretrained, num_classes))
        if not has_weights:
            raise OSError("cannot reach the hub")
        return TinyNetwork()

    config = {"input_size": (3, 12, 16), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    library.create_model = create_model
    library.is_model = lambda name: name == "tiny_net"
    library.list_models = lambda pattern="*": ["tiny_net"] if "tiny" in pattern else []
    library.data = types.SimpleNamespace(resolve_data_config=lambda args, model: config)
    return library


def make_openclip(*, has_weights=True):
    """The library OpenCLIP, with one model."""
    library = types.ModuleType("open_clip")

    def create_model(name, pretrained):
        if not has_weights:
            raise RuntimeError("cannot reach the hub")
        model = TinyNetwork(len(pretrained))
        model.visual = nn.Identity()
        model.visual.image_size, model.visual.output_dim = 16, 6
        return model

    library.create_model = create_model
    library.list_models = lambda: ["Tiny-B-32"]
    library.list_pretrained_tags_by_model = lambda name: ["small", "large2b"]
    return library
