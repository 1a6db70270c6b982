"""EfficientNet-Lite0 in torch: a picture of 224 x 224 to 1280 numbers (Tan and Le, 2019).

Blocks widen each pixel's channels, convolve each channel alone, and narrow them again. The lite
variant has neither squeeze-and-excitation nor swish: all activations are ReLU6. Layers are named as
in the released weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

PIXELS = 224
DIM = 1280
_NORM_EPS = 1e-3
# Blocks of a stage, kernel, stride, factor of widening, channels given.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


def _norm(n_channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(n_channels, eps=_NORM_EPS)


class _Block(nn.Module):
    """Widen, convolve each channel, narrow; a shortcut where nothing changes shape."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, factor: int) -> None:
        super().__init__()
        width = n_in * factor
        self._expand_conv = None if factor == 1 else nn.Conv2d(n_in, width, 1, bias=False)
        self._bn0 = None if factor == 1 else _norm(width)
        self._depthwise_conv = nn.Conv2d(
            width, width, kernel, stride, padding=kernel // 2, groups=width, bias=False
        )
        self._bn1 = _norm(width)
        self._project_conv = nn.Conv2d(width, n_out, 1, bias=False)
        self._bn2 = _norm(n_out)
        self.has_shortcut = stride == 1 and n_in == n_out

    def forward(self, pixels: Tensor) -> Tensor:
        inner = pixels
        if self._expand_conv is not None and self._bn0 is not None:
            inner = F.relu6(self._bn0(self._expand_conv(inner)))
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        narrowed: Tensor = self._bn2(self._project_conv(inner))
        return narrowed + pixels if self.has_shortcut else narrowed


class EfficientNetLite0(nn.Module):
    """The features before the classifier.

    Parameters
    ----------
    weights : mapping of str to Tensor, optional
        The released weights; those of the classifier are not used. By default random ones.
    """

    def __init__(self, weights: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        self._conv_stem = nn.Conv2d(3, 32, 3, 2, padding=1, bias=False)
        self._bn0 = _norm(32)
        blocks, n_in = [], 32
        for n_blocks, kernel, stride, factor, n_out in _STAGES:
            for number in range(n_blocks):
                blocks.append(_Block(n_in, n_out, kernel, 1 if number else stride, factor))
                n_in = n_out
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(n_in, DIM, 1, bias=False)
        self._bn1 = _norm(DIM)
        if weights is not None:
            own = {name: value for name, value in weights.items() if not name.startswith("_fc.")}
            self.load_state_dict(own)
        self.eval().requires_grad_(False)

    def fold_norms(self) -> None:
        """Fold the normalisations into the convolutions before them: twice as fast on a CPU."""
        pairs = {"_conv_stem": "_bn0", "_conv_head": "_bn1", "_expand_conv": "_bn0"}
        pairs |= {"_depthwise_conv": "_bn1", "_project_conv": "_bn2"}
        for module in (self, *self._blocks):
            for convolution, norm in pairs.items():
                if getattr(module, convolution, None) is not None:
                    layers = getattr(module, convolution), getattr(module, norm)
                    setattr(module, convolution, fuse_conv_bn_eval(*layers))
                    setattr(module, norm, nn.Identity())
        self.requires_grad_(False)

    def forward(self, pictures: Tensor) -> Tensor:
        """Describe pictures.

        Parameters
        ----------
        pictures : Tensor of shape (n, 3, height, width)
            Normalised red, green and blue.

        Returns
        -------
        features : Tensor of shape (n, 1280)
        """
        pixels = F.relu6(self._bn0(self._conv_stem(pictures)))
        pixels = F.relu6(self._bn1(self._conv_head(self._blocks(pixels))))
        return pixels.mean(dim=(2, 3))
