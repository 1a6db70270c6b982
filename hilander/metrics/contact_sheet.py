"""Contact sheet: images of some clusters, one row for each cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.metrics.canvas import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILION,
    check_picture_path,
    new_figure,
    save_figure,
)
from hilander.metrics.contingency import encode_side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FRAMES = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
_CELL_INCHES = 0.56  # width of an image with its frame
_TITLE_INCHES = 2.1  # width of the titles at the left
_NOTE_INCHES = 0.35  # height of the line that explains the frames
_CELL_PIXELS = 84  # size to which small images are enlarged


def plot_contact_sheet(
    thumbs: NDArray[np.uint8],
    clusters: Sequence[IntArray],
    path: str | os.PathLike[str],
    titles: Sequence[str] | None = None,
    per_cluster: int = 12,
    true: ArrayLike | None = None,
) -> Path:
    """Write the picture of :func:`draw_contact_sheet` to a file.

    Parameters
    ----------
    thumbs, clusters, titles, per_cluster, true
        As for :func:`draw_contact_sheet`.
    path : path-like
        Ends in .png, .svg or .pdf.

    Returns
    -------
    path : Path
        The file written.
    """
    check_picture_path(path)
    return save_figure(draw_contact_sheet(thumbs, clusters, titles, per_cluster, true), path)


def draw_contact_sheet(
    thumbs: NDArray[np.uint8],
    clusters: Sequence[IntArray],
    titles: Sequence[str] | None = None,
    per_cluster: int = 12,
    true: ArrayLike | None = None,
) -> Figure:
    """Draw images of clusters, one row for each cluster.

    Parameters
    ----------
    thumbs : ndarray of shape (n_points, height, width) or (n_points, height, width, 3), uint8
        Image of each point, grey or RGB.
    clusters : sequence of ndarray of shape (n_members,)
        Row numbers of the members, as ``largest_clusters`` and ``worst_mistakes`` return them.
    titles : sequence of str, optional
        Name of each row; the number of images, and of identities where known, by default.
    per_cluster : int, default 12
        Largest number of images of a cluster.
    true : array-like of shape (n_points,), optional
        True identities, shown as frames: blue for the commonest identity of the row, other colours
        for other identities. A row with too many images then shows some of each identity.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    codes = None if true is None else encode_side(true, "true")[0]
    _check_sheet(thumbs, clusters, titles, per_cluster, codes)
    names = titles if titles is not None else [_describe(rows, codes) for rows in clusters]
    sheet = _paint_sheet(thumbs, clusters, per_cluster, codes)

    n_columns = min(per_cluster, max(len(rows) for rows in clusters))
    cell_height = _CELL_INCHES * thumbs.shape[1] / thumbs.shape[2]
    note = _NOTE_INCHES if codes is not None else 0.0
    width = _TITLE_INCHES + _CELL_INCHES * n_columns
    # The line that explains the frames needs this width even with few images.
    width = max(width, 5.0)
    height = cell_height * len(clusters) + note + 0.1
    figure = new_figure(width, height)
    axes = figure.add_axes(
        (
            _TITLE_INCHES / width,
            0.05 / height,
            _CELL_INCHES * n_columns / width,
            cell_height * len(clusters) / height,
        )
    )
    axes.imshow(sheet, aspect="auto", interpolation="antialiased")
    axes.set_axis_off()
    for index, name in enumerate(names):
        axes.text(
            -0.12 / (_CELL_INCHES * n_columns),
            1 - (index + 0.5) / len(clusters),
            _shorten(str(name)),
            transform=axes.transAxes,
            ha="right",
            va="center",
            color=INK,
            fontsize=8,
            parse_math=False,
        )
    if codes is not None:
        figure.text(
            0.12 / width,
            1 - 0.5 * note / height,
            "frame: blue = commonest identity of the row, other colours = other identities",
            va="center",
            color=INK,
            fontsize=7.5,
        )
    return figure


def choose_members(rows: IntArray, count: int, true: IntArray | None = None) -> IntArray:
    """Choose the images of a row that cannot show them all.

    With identities, each contributes one image in turn, so that a few wrong images among many are
    shown. The commonest identity comes first. Without identities, the first images are chosen.

    Parameters
    ----------
    rows : ndarray of shape (n_members,)
    count : int
        Largest number of images.
    true : ndarray of shape (n_points,), optional
        True identity codes.

    Returns
    -------
    chosen : ndarray of shape (min(count, n_members),)
    """
    if true is None:
        return rows[:count]
    rank = _rank_identities(true[rows])
    rows = rows[np.argsort(rank, kind="stable")]
    rank = np.sort(rank)
    turn = np.arange(len(rows)) - np.searchsorted(rank, rank)  # place within its identity
    chosen = np.lexsort((rank, turn))[:count]
    return rows[np.sort(chosen)]


def _rank_identities(codes: IntArray) -> IntArray:
    # 0 for the commonest identity of these points, 1 for the next, ...
    _, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return rank[inverse]


def _paint_sheet(
    thumbs: NDArray[np.uint8], clusters: Sequence[IntArray], per_cluster: int, true: IntArray | None
) -> NDArray[np.uint8]:
    height, width = thumbs.shape[1:3]
    # Whole-number enlargement keeps small images sharp.
    scale = max(1, round(_CELL_PIXELS / max(height, width)))
    pad = max(2, round(0.055 * scale * max(height, width)))
    cell = (height * scale + 4 * pad, width * scale + 4 * pad)
    n_columns = min(per_cluster, max(len(rows) for rows in clusters))
    paper = _rgb(PAPER)
    sheet = np.empty((cell[0] * len(clusters), cell[1] * n_columns, 3), dtype=np.uint8)
    sheet[:] = paper
    for line, rows in enumerate(clusters):
        rows = np.asarray(rows)
        chosen = choose_members(rows, per_cluster, true)
        if true is None:
            frames = np.full(len(chosen), -1)
        else:
            # Ranked over the whole cluster: among the shown images all may be equally common.
            order = dict(zip(rows.tolist(), _rank_identities(true[rows]).tolist(), strict=True))
            frames = np.array([order[row] for row in chosen.tolist()])
        for column, (row, frame) in enumerate(zip(chosen, frames, strict=True)):
            top, left = line * cell[0] + pad, column * cell[1] + pad
            box = sheet[top : top + cell[0] - 2 * pad, left : left + cell[1] - 2 * pad]
            box[:] = _frame_colour(int(frame))
            image = thumbs[row].repeat(scale, axis=0).repeat(scale, axis=1)
            box[pad:-pad, pad:-pad] = image if image.ndim == 3 else image[:, :, None]
    return sheet


def _frame_colour(rank: int) -> NDArray[np.uint8]:
    if rank < 0:
        return _rgb(FAINT)
    # Blue stays with the commonest identity; the others share the rest.
    others = _FRAMES[1:]
    return _rgb(_FRAMES[0] if rank == 0 else others[(rank - 1) % len(others)])


def _rgb(colour: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytes.fromhex(colour.removeprefix("#")), dtype=np.uint8)


def _describe(rows: IntArray, true: IntArray | None) -> str:
    images = f"{len(rows):,} image" + ("s" if len(rows) != 1 else "")
    if true is None:
        return images
    _, counts = np.unique(true[rows], return_counts=True)
    counts = -np.sort(-counts)
    if len(counts) == 1:
        return f"{images}\n1 identity"
    shares = " + ".join(f"{count:,}" for count in counts[:3]) + (" + …" if len(counts) > 3 else "")
    return f"{images}\n{len(counts):,} identities: {shares}"


def _shorten(name: str, limit: int = 31) -> str:
    lines = [line if len(line) <= limit else line[: limit - 1] + "…" for line in name.split("\n")]
    return "\n".join(lines[:2])


def _check_sheet(
    thumbs: Any,
    clusters: Sequence[IntArray],
    titles: Sequence[str] | None,
    per_cluster: int,
    true: IntArray | None,
) -> None:
    shape: tuple[int, ...] = getattr(thumbs, "shape", ())
    grey, colour = len(shape) == 3, len(shape) == 4 and shape[-1] == 3
    if not (grey or colour) or thumbs.dtype != np.uint8 or 0 in shape[1:]:
        raise SettingError(
            f"thumbs of shape {shape} and type {getattr(thumbs, 'dtype', type(thumbs).__name__)}, "
            "expected (n, height, width) or (n, height, width, 3) of uint8; scale the images to "
            "0..255 and stack them"
        )
    if len(clusters) == 0 or min(len(rows) for rows in clusters) == 0:
        raise SettingError("no cluster to draw or an empty one, expected members; leave it out")
    lowest, highest = min(np.min(r) for r in clusters), max(np.max(r) for r in clusters)
    if lowest < 0 or highest >= shape[0]:
        raise SettingError(
            f"clusters name images {lowest} to {highest}, expected 0 to {shape[0] - 1}; give the "
            "thumbs of all points, in their order"
        )
    if per_cluster < 1:
        raise SettingError(f"per_cluster={per_cluster}, expected at least 1; draw one or more")
    if titles is not None and len(titles) != len(clusters):
        raise SettingError(
            f"{len(titles)} titles for {len(clusters)} clusters, expected one each; add or drop"
        )
    if true is not None and len(true) != shape[0]:
        raise SettingError(
            f"{len(true)} true labels for {shape[0]} images, expected one each; give the labels "
            "of the same points"
        )
