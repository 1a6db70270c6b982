"""Settings of a LANDER network."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args

from hilander.errors import ModelError, SettingError, check_choice

Encoder = Literal["attention", "convolution"]
Features = Literal["identity", "average", "concat"]

ENCODERS: tuple[str, ...] = get_args(Encoder)
FEATURES: tuple[str, ...] = get_args(Features)


@dataclass(frozen=True)
class NetworkSettings:
    """The shape of a LANDER network.

    Parameters
    ----------
    dim : int
        Width of the embeddings.
    features : {"identity", "average", "concat"}
        Input of a node: the feature of its peak, the mean of its points, or both.
    encoder : {"attention", "convolution"}
        How the feature of a node is combined with those of its neighbours.
    hidden : int
        Width of the encoder; the linkage head has half of it.
    layers : int
        Encoder layers. From the third on they have the head's width.
    heads : int
        Attention heads, averaged.
    dropout : float
        Share of encoder outputs dropped in training.
    """

    dim: int
    features: Features = "concat"
    encoder: Encoder = "attention"
    hidden: int = 512
    layers: int = 1
    heads: int = 1
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_choice("features", self.features, FEATURES)
        check_choice("encoder", self.encoder, ENCODERS)
        for name, least in (("dim", 1), ("hidden", 2), ("layers", 1), ("heads", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number >= {least}")
            object.__setattr__(self, name, int(value))  # JSON cannot hold a numpy integer
        dropout: Any = self.dropout
        if not isinstance(dropout, Real) or not 0 <= float(dropout) < 1:
            raise SettingError(f"dropout={dropout!r} must be in [0, 1)")

    @property
    def input_width(self) -> int:
        """Width of the input of a node."""
        return 2 * self.dim if self.features == "concat" else self.dim

    @property
    def head_width(self) -> int:
        """Width of the linkage head."""
        return self.hidden // 2

    @property
    def layer_widths(self) -> list[tuple[int, int]]:
        """Input and output width of each encoder layer."""
        outputs = [self.hidden if layer < 2 else self.head_width for layer in range(self.layers)]
        return list(zip([self.input_width, *outputs[:-1]], outputs, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NetworkSettings:
        """Rebuild settings from `to_dict`, refusing what is missing or unknown."""
        known = {field.name for field in fields(cls)}
        if set(values) != known:
            odd = sorted(set(values) ^ known)
            raise ModelError(f"the model's settings differ from this version's in {odd}")
        return cls(**values)
