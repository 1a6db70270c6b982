"""dlib's face network in torch: a residual network of 29 convolutions, 150 x 150 to 128 numbers.

The layers are those of dlib's ``anet_type``. Batch normalisation is a factor and an offset for each
channel, which are folded into the convolutions. Convolutions with a stride of 2 do not pad.
A shortcut that halves the picture is an average over 2 x 2 pixels. Where a shortcut and its block
differ in width, height or channels, the smaller is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilander.embedders.faces.dlib_weights import DlibWeights
from hilander.errors import ModelError

DIM = 128
# Mean red, green and blue, and the scale, of dlib's input layer.
_MEAN = (122.782, 117.001, 104.298)
_SCALE = 256.0
# Channels of each block, and whether it halves the picture.
_BLOCKS = (
    *((32, False),) * 3,
    (64, True), *((64, False),) * 3,
    (128, True), *((128, False),) * 2,
    (256, True), *((256, False),) * 2,
    (256, True),
)  # fmt: skip


class _Block(nn.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, n_inputs: int, n_channels: int, *, halves: bool) -> None:
        super().__init__()
        stride = 2 if halves else 1
        self.halves = halves
        self.first = nn.Conv2d(n_inputs, n_channels, 3, stride, padding=0 if halves else 1)
        self.second = nn.Conv2d(n_channels, n_channels, 3, padding=1)

    def forward(self, pixels: Tensor) -> Tensor:
        changed = self.second(F.relu(self.first(pixels)))
        kept = F.avg_pool2d(pixels, 2) if self.halves else pixels
        if changed.shape != kept.shape:
            shape = [max(pair) for pair in zip(changed.shape, kept.shape, strict=True)]
            changed, kept = _fill_up(changed, shape), _fill_up(kept, shape)
        return F.relu(changed + kept)


class FaceNetwork(nn.Module):
    """Describes aligned faces.

    Parameters
    ----------
    weights : DlibWeights
    """

    def __init__(self, weights: DlibWeights) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 7, stride=2)
        inputs = (32, *(channels for channels, _ in _BLOCKS))
        self.blocks = nn.Sequential(
            *(
                _Block(n_inputs, n_channels, halves=halves)
                for n_inputs, (n_channels, halves) in zip(inputs, _BLOCKS, strict=False)
            )
        )
        self.projection = nn.Linear(inputs[-1], DIM, bias=False)
        self._fill(weights)
        self.eval().requires_grad_(False)

    def forward(self, faces: Tensor) -> Tensor:
        """Describe faces.

        Parameters
        ----------
        faces : Tensor of shape (n, 3, 150, 150)
            Red, green and blue from 0 to 255.

        Returns
        -------
        features : Tensor of shape (n, 128)
            As dlib gives them: not of length 1.
        """
        mean = faces.new_tensor(_MEAN)[:, None, None]
        pixels = F.relu(self.stem((faces - mean) / _SCALE))  # (n, 32, 72, 72)
        pixels = self.blocks(F.max_pool2d(pixels, 3, 2))  # (n, 256, 2, 2)
        projected: Tensor = self.projection(pixels.mean(dim=(2, 3)))
        return projected

    def _convolutions(self) -> Iterator[nn.Conv2d]:
        yield self.stem
        for block in self.blocks:
            if isinstance(block, _Block):
                yield block.first
                yield block.second

    def _fill(self, weights: DlibWeights) -> None:
        """Copy the weights; the factor and offset of each channel go into its filter."""
        layers = list(self._convolutions())
        counts = len(weights.convolutions), len(weights.scales)
        if counts != (len(layers), len(layers)):
            raise ModelError(
                f"dlib's face network has {counts[0]} convolutions and {counts[1]} scales, "
                f"expected {len(layers)} each; install face_recognition_models again"
            )
        with torch.no_grad():
            for layer, flat, (factor, offset) in zip(
                layers, weights.convolutions, weights.scales, strict=True
            ):
                n_weights = layer.weight.numel()
                filters, biases = torch.from_numpy(flat[:n_weights]), flat[n_weights:]
                scale = torch.from_numpy(factor)
                layer.weight.copy_(filters.view_as(layer.weight) * scale[:, None, None, None])
                if layer.bias is not None:
                    layer.bias.copy_(torch.from_numpy(biases * factor + offset))
            self.projection.weight.copy_(torch.from_numpy(weights.projection).T)


def _fill_up(values: Tensor, shape: list[int]) -> Tensor:
    """Add zeros behind each dimension, up to a shape."""
    missing = [size - own for size, own in zip(shape, values.shape, strict=True)]
    return F.pad(values, [part for extra in reversed(missing) for part in (0, extra)])
