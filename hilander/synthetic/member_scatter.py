"""How the members of real identities scatter, and new members that scatter alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows

_BLENDED = 4  # sides of real members in a new one's, from its own identity and from any each
_OWN = np.float32(0.6)  # share of the former in the square of its length
_ALIKE = 0.02  # of all members, to each side in the order of how far they follow their centres
_FEWEST_ALIKE = 5


class EnsembleLinear:
    """Points of identities, each in two parts: how far it follows its centre, and its side.

    The side is what a picture has of its own: pose, light, age. A new member follows its centre as
    far as a real one does, and its side is blended of real ones: half of them from one identity, so
    that each new one is stretched along ways of its own, the other half from any whose members
    follow as far. So a large identity is not made of repeats.

    Parameters
    ----------
    points : ndarray of shape (n_members, dim), of unit length
        Those of an identity one after the other.
    centres : ndarray of shape (n_members, dim)
        The centre of each one's identity.
    first, count : ndarray of shape (n_identities,)
        Where the members of each identity start, and how many there are.
    """

    def __init__(
        self, points: FloatArray, centres: FloatArray, first: IntArray, count: IntArray
    ) -> None:
        self.first, self.count = first, count
        centres = unit_rows(centres)
        self.along = np.einsum("ij,ij->i", points, centres)
        self.side = points - self.along[:, None] * centres
        self._in_order = np.argsort(self.along, kind="stable")
        self._place = np.argsort(self._in_order, kind="stable")

    @property
    def tightness(self) -> FloatArray:
        """How far the members of each identity follow its centre, their mean, (n_identities,)."""
        mean = np.add.reduceat(self.along, self.first) / self.count
        return mean.astype(np.float32)

    def draw(self, sources: IntArray, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New members around centres, shape (n_points, dim), of unit length.

        Parameters
        ----------
        sources : ndarray of shape (n_points,)
            The identity as whose members each one scatters.
        centres : ndarray of shape (n_points, dim), of unit length
        rng : numpy Generator
        """
        models, n_points = self._draw_own(sources, rng), len(sources)
        own = self._blend(n_points, lambda: self._draw_own(sources, rng), rng)
        others = self._blend(n_points, lambda: self._draw_alike(models, rng), rng)
        side = np.sqrt(_OWN) * own + np.sqrt(1 - _OWN) * others
        side -= (side * centres).sum(axis=1, keepdims=True) * centres
        length = np.linalg.norm(self.side[models], axis=1, keepdims=True)
        points = self.along[models, None] * centres + length * unit_rows(side)
        return unit_rows(points).astype(np.float32)

    def _draw_own(self, sources: IntArray, rng: np.random.Generator) -> IntArray:
        """A member of each source."""
        chosen = (rng.random(len(sources)) * self.count[sources]).astype(np.int64)
        return self.first[sources] + chosen

    def _draw_alike(self, models: IntArray, rng: np.random.Generator) -> IntArray:
        """A member of any identity that follows its centre about as far as each model."""
        width = min(2 * max(int(_ALIKE * len(self.along)), _FEWEST_ALIKE) + 1, len(self.along))
        start = np.clip(self._place[models] - width // 2, 0, len(self.along) - width)
        alike: IntArray = self._in_order[start + rng.integers(width, size=len(models))]
        return alike

    def _blend(
        self, n_points: int, draw: Callable[[], IntArray], rng: np.random.Generator
    ) -> FloatArray:
        """Some sides added up by chance weights, to unit length."""
        blended = np.zeros((n_points, self.side.shape[1]), dtype=np.float32)
        for _ in range(_BLENDED):
            weight = np.abs(rng.standard_normal((n_points, 1), np.float32))
            blended += weight * self.side[draw()]
        return unit_rows(blended)
