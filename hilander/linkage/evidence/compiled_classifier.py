"""An edge classifier on the processor: its weights, packed for the compiled loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

Layer = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class CompiledClassifier:
    """Weights of an ensemble of networks with two hidden layers.

    Parameters
    ----------
    scaling : ndarray of shape (2, width)
        Mean of each feature, and one over its standard deviation.
    largest : float
        Standardised features are clipped to this.
    first, second : (packed weights, biases)
        Of the hidden layers, for each member.
    last : (ndarray of shape (members, hidden), float)
        Weights and bias of the output, divided by the number of members.
    """

    scaling: FloatArray
    largest: float
    first: Layer
    second: Layer
    last: tuple[FloatArray, float]

    @classmethod
    def pack(
        cls,
        scaling: tuple[Tensor, Tensor],
        largest: float,
        layers: tuple[tuple[Tensor, Tensor], ...],
    ) -> CompiledClassifier:
        """Pack the weights of a classifier.

        Parameters
        ----------
        scaling : mean and standard deviation of the features, each of shape (width,)
        largest : float
        layers : weights of shape (members, n_in, n_out) and biases (members, 1, n_out), of each
            of the three layers
        """
        centre, scale = (_to_numpy(one).astype(np.float64) for one in scaling)
        first = _pack_layer(*layers[0], len(centre))
        second = _pack_layer(*layers[1], first[1].shape[1])
        weight, bias = (_to_numpy(one) for one in layers[2])
        members, hidden = first[1].shape
        last = np.zeros((members, hidden), dtype=np.float32)
        last[:, : weight.shape[1]] = weight[:, :, 0] / members
        scaling_of = np.stack([centre, 1 / scale]).astype(np.float32)
        return cls(scaling_of, largest, first, second, (last, float(bias.mean())))

    def predict(self, edge_features: FloatArray) -> FloatArray:
        """Probabilities of shape (n_nodes, k) from edge features of shape (n_nodes, k, width)."""
        from hilander.linkage.evidence.classifier_kernels import score_edges

        columns = np.ascontiguousarray(edge_features.reshape(-1, edge_features.shape[-1]).T)
        probability = np.empty(columns.shape[1], dtype=np.float32)
        score_edges(
            columns, self.scaling, self.largest, self.first, self.second, self.last, probability
        )
        return probability.reshape(edge_features.shape[:-1])


def _pack_layer(weight: Tensor, bias: Tensor, n_in: int) -> Layer:
    """Weights and biases of all members, padded to `n_in` inputs and with units that are 0."""
    from hilander.arrays.vector_kernels import OUTPUTS, pack_weights

    members, n_given, n_out = weight.shape
    weights = np.zeros((members, n_out, n_in), dtype=np.float32)
    weights[:, :, :n_given] = _to_numpy(weight).swapaxes(1, 2)
    biases = np.zeros((members, -(-n_out // OUTPUTS) * OUTPUTS), dtype=np.float32)
    biases[:, :n_out] = _to_numpy(bias)[:, 0]
    return np.stack([pack_weights(one) for one in weights]), biases


def _to_numpy(tensor: Tensor) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.detach().cpu().numpy()
    return array
