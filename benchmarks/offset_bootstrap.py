"""Made-up identities as the shipped box learned from: members offset as real ones are.

A member is a new centre and the offsets of two members of three real identities. Large identities
made so are full of near repeats, so `fit` learns from those of `hilander.synthetic.identity_bootstrap` alone.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.synthetic.identity_bootstrap import IdentityBootstrap

_SOURCES = 3
_FARTHEST_TURN = np.pi / 6  # from the first offset to the second


class OffsetBootstrap(IdentityBootstrap):
    """Makes labelled sets of new identities, whose members are offset from their centre."""

    groups_small = False

    def _scatter_members(
        self, centres: FloatArray, labels: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        sources = rng.integers(len(self.first), size=(len(centres), _SOURCES))
        turn = rng.uniform(0, _FARTHEST_TURN, size=(len(labels), 1)).astype(np.float32)
        points = centres[labels]
        points += np.cos(turn) * self._draw_offsets(sources[labels], rng)
        points += np.sin(turn) * self._draw_offsets(sources[labels], rng)
        return unit_rows(points)

    def _draw_offsets(self, sources: IntArray, rng: np.random.Generator) -> FloatArray:
        chosen = sources[np.arange(len(sources)), rng.integers(sources.shape[1], size=len(sources))]
        member = (rng.random(len(chosen)) * self.count[chosen]).astype(np.int64)
        drawn: FloatArray = self.scatter[self.first[chosen] + member]
        return drawn
