"""Colours of clusters on the map of a report."""

from __future__ import annotations

import colorsys

# Fraction of the hue circle between two consecutive clusters: the golden ratio keeps them apart.
_HUE_STEP = 0.618033988749895
# The same for all, readable on a light and on a dark page; in [0, 1].
_LIGHTNESS, _SATURATION = 0.52, 0.6


def cluster_colour(cluster: int) -> str:
    """Return a colour as ``#rrggbb``; consecutive cluster numbers get distant hues."""
    rgb = colorsys.hls_to_rgb((cluster * _HUE_STEP) % 1, _LIGHTNESS, _SATURATION)
    return "#" + "".join(f"{round(255 * value):02x}" for value in rgb)
