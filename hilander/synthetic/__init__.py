"""Synthetic labelled sets: episodes, identities, face-like sets, glyphs."""

from hilander.synthetic.identities import make_identities

__all__ = ["make_identities"]
