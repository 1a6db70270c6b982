"""Synthetic identities as the shipped pretrained model was trained on.

A member is a new centre plus the offsets of two members of three real identities. A large identity
made in this way has many members that are nearly equal. So `fit` uses
`hilander.synthetic.identity_bootstrap` instead.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.synthetic.identity_bootstrap import IdentityBootstrap

_SOURCES = 3  # real identities whose offsets one synthetic identity has
_FARTHEST_TURN = np.pi / 6  # radians, from the first offset to the second, at most


class OffsetBootstrap(IdentityBootstrap):
    """Makes labelled sets of new identities by adding offsets of real members to new centres."""

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
