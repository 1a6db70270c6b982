"""How the members of real identities scatter around their centres, and new members like them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows

# Residuals of real members that are mixed for a new one, from its own identity and from any
# identity each: with fewer, a large new identity has near repeats.
_N_MIXED = 4
# Share of the former in the squared length of the mixed residual.
_OWN_SHARE = np.float32(0.6)
# Members with a similar projection: this share of all members to either side in their order.
_SIMILAR_SHARE = 0.02
# Members to either side at least, in a small set.
_FEWEST_SIMILAR = 5


class MemberScatter:
    """Members of identities, each in two parts: its projection on its centre, and its residual.

    The residual is what a picture has of its own: pose, light, age. A new member has the projection
    of a real one. Its residual is mixed from those of real ones: one part from one identity, so
    that each new identity is stretched along its own directions; the other part from any identity
    with similar projections, so that a large new identity has no repeats.

    Parameters
    ----------
    points : ndarray of shape (n_members, dim), of unit length
        Ordered by identity.
    centres : ndarray of shape (n_members, dim)
        The centre of each member's identity.
    first, count : ndarray of shape (n_identities,)
        Index of each identity's first member, and the number of its members.
    """

    def __init__(
        self, points: FloatArray, centres: FloatArray, first: IntArray, count: IntArray
    ) -> None:
        self.first, self.count = first, count
        centres = unit_rows(centres)
        self.projection = np.einsum("ij,ij->i", points, centres)
        self.residual = points - self.projection[:, None] * centres
        self._by_projection = np.argsort(self.projection, kind="stable")
        self._place = np.argsort(self._by_projection, kind="stable")

    @property
    def tightness(self) -> FloatArray:
        """Mean projection of the members of each identity, shape (n_identities,), at most 1."""
        mean = np.add.reduceat(self.projection, self.first) / self.count
        return mean.astype(np.float32)

    def draw(self, sources: IntArray, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
        """New members around centres, shape (n_points, dim), of unit length.

        Parameters
        ----------
        sources : ndarray of shape (n_points,)
            The real identity that each new member is modelled on.
        centres : ndarray of shape (n_points, dim), of unit length
        rng : numpy Generator
        """
        models, n_points = self._draw_own(sources, rng), len(sources)
        own = self._mix(n_points, lambda: self._draw_own(sources, rng), rng)
        others = self._mix(n_points, lambda: self._draw_similar(models, rng), rng)
        residual = np.sqrt(_OWN_SHARE) * own + np.sqrt(1 - _OWN_SHARE) * others
        residual -= (residual * centres).sum(axis=1, keepdims=True) * centres
        length = np.linalg.norm(self.residual[models], axis=1, keepdims=True)
        points = self.projection[models, None] * centres + length * unit_rows(residual)
        return unit_rows(points).astype(np.float32)

    def _draw_own(self, sources: IntArray, rng: np.random.Generator) -> IntArray:
        """A random member of each source."""
        chosen = (rng.random(len(sources)) * self.count[sources]).astype(np.int64)
        return self.first[sources] + chosen

    def _draw_similar(self, models: IntArray, rng: np.random.Generator) -> IntArray:
        """A random member of any identity, with about the projection of each model."""
        n_side = max(int(_SIMILAR_SHARE * len(self.projection)), _FEWEST_SIMILAR)
        width = min(2 * n_side + 1, len(self.projection))
        start = np.clip(self._place[models] - width // 2, 0, len(self.projection) - width)
        similar: IntArray = self._by_projection[start + rng.integers(width, size=len(models))]
        return similar

    def _mix(
        self, n_points: int, draw: Callable[[], IntArray], rng: np.random.Generator
    ) -> FloatArray:
        """Sums of randomly weighted residuals, brought to unit length."""
        mixed = np.zeros((n_points, self.residual.shape[1]), dtype=np.float32)
        for _ in range(_N_MIXED):
            weight = np.abs(rng.standard_normal((n_points, 1), np.float32))
            mixed += weight * self.residual[draw()]
        return unit_rows(mixed)
