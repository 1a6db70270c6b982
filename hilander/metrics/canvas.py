"""Common parts of all plots: colours, axes, and writing to a file.

Figures are made and saved without pyplot, so drawing has no global state and needs no display.
matplotlib is an extra and is imported only when a figure is made.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.errors import SettingError
from hilander.io.writing import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, distinguishable with all common kinds of colour blindness.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
INK, FAINT, PAPER = "#333333", "#D9D9D9", "#FFFFFF"

_FORMATS = ("png", "svg", "pdf")
_DPI = 150  # dots per inch


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure with a white background.

    Parameters
    ----------
    width, height : float
        In inches.

    Returns
    -------
    figure : matplotlib.figure.Figure
        With a canvas of its own, outside pyplot.

    Raises
    ------
    SettingError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise SettingError(
            "matplotlib is not installed and plots need matplotlib: pip install 'hilander[plots]'"
        ) from error
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor=PAPER)
    figure.set_layout_engine("none")  # margins are set explicitly, whatever the user's settings
    FigureCanvasAgg(figure)
    return figure


def dress_axes(axes: Any, ylabel: str, xlabel: str = "") -> None:
    """Set labels, a faint grid and no box, whatever the user's matplotlib settings."""
    axes.set_facecolor(PAPER)
    axes.set_ylabel(ylabel, color=INK)
    axes.set_xlabel(xlabel, color=INK)
    axes.tick_params(which="both", colors=INK, length=0)
    axes.grid(axis="y", which="major", color=FAINT, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(INK)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure atomically.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path-like
        Ends in .png, .svg or .pdf, which decides the format.

    Returns
    -------
    path : Path
        The file written.
    """
    path = check_picture_path(path)
    with write_atomically(path) as temporary, warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes; the plot is still useful.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(temporary, format=path.suffix[1:].lower(), facecolor=PAPER)
    return path


def check_picture_path(path: str | os.PathLike[str]) -> Path:
    """The path, if its suffix is a format that can be written.

    Raises
    ------
    SettingError
        If it does not.
    """
    path = Path(path)
    if path.suffix[1:].lower() not in _FORMATS:
        raise SettingError(
            f"picture file {path.name!r} ends in {path.suffix!r}, expected one of "
            f"{', '.join('.' + name for name in _FORMATS)}; rename it, for example to "
            f"{path.stem}.png"
        )
    return path
