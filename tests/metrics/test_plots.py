import sys

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.metrics.report import score_clustering

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

from hilander.metrics.contact_sheet import choose_members  # noqa: E402
from hilander.metrics.plots import (  # noqa: E402
    draw_contact_sheet,
    draw_levels,
    draw_sizes,
    draw_training,
    largest_clusters,
    plot_contact_sheet,
    plot_levels,
    plot_sizes,
    plot_training,
    worst_mistakes,
)

TRUE = np.arange(60) // 6
LEVELS = [np.arange(60) // 2, np.arange(60) // 3, np.arange(60) // 6, np.arange(60) // 12]
SCORES = [score_clustering(TRUE, labels) for labels in LEVELS]
COUNTS = [30, 20, 10, 5]
HISTORY = [
    {"epoch": e, "loss": 1.1 / e, "connectivity_loss": 1.0 / e, "density_loss": 0.1 / e}
    for e in range(1, 21)
]
BLUE = (0x00, 0x72, 0xB2)
VERMILION = (0xD5, 0x5E, 0x00)


@pytest.fixture
def thumbs():
    return np.random.default_rng(0).integers(0, 100, (60, 8, 8), dtype=np.uint8)


def stop_of(figure, name):
    """Level at which a stop is marked, for each panel."""
    return [
        line.get_xdata()[0] for axes in figure.axes for line in axes.lines if line.get_gid() == name
    ]


def legend_names(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def sheet_of(figure):
    return np.asarray(figure.axes[0].images[0].get_array())


def has_colour(picture, colour):
    return bool((picture == np.array(colour)).all(axis=-1).any())


def texts(figure):
    return [t.get_text() for t in [*figure.texts, *(t for a in figure.axes for t in a.texts)]]


@pytest.mark.parametrize("name", ["levels", "sizes", "training", "sheet"])
def test_every_plot_is_written_as_a_readable_picture(name, tmp_path, thumbs):
    path = tmp_path / f"{name}.png"
    plots = {
        "levels": lambda: plot_levels(SCORES, COUNTS, path, 2),
        "sizes": lambda: plot_sizes(LEVELS[3], path, TRUE),
        "training": lambda: plot_training(HISTORY, str(path)),
        "sheet": lambda: plot_contact_sheet(thumbs, largest_clusters(TRUE, 4), path, true=TRUE),
    }
    assert plots[name]() == path
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert 300 <= picture.width <= 3000
        assert 200 <= picture.height <= 3000
        pixels = np.asarray(picture.convert("RGB"))
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_suffix_of_the_file_decides_its_format(suffix, start, tmp_path):
    path = plot_sizes(TRUE, tmp_path / f"sizes.{suffix}")
    assert path.read_bytes().startswith(start)


def test_an_unknown_suffix_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(SettingError, match=r"'\.bmp'.*expected one of \.png, \.svg, \.pdf"):
        plot_sizes(TRUE, tmp_path / "sizes.bmp")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_keeps_the_old_picture(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = plot_sizes(TRUE, tmp_path / "sizes.png")
    before = path.read_bytes()

    def fail(self, target, **_):
        with open(target, "wb") as file:
            file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        plot_sizes(LEVELS[0], path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["sizes.png"]


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SettingError, match=r"plots need matplotlib: pip install 'hilander\[plots"):
        plot_sizes(TRUE, tmp_path / "sizes.png")


def test_drawing_does_not_use_pyplot():
    from matplotlib import _pylab_helpers

    draw_levels(SCORES, COUNTS, 1)
    draw_sizes(TRUE)
    assert _pylab_helpers.Gcf.get_all_fig_managers() == []


def test_both_stops_are_marked_in_every_panel():
    figure = draw_levels(SCORES, COUNTS, early_stop_level=1)
    assert stop_of(figure, "early stop") == [1, 1]
    assert stop_of(figure, "convergence") == [3, 3]
    assert {"early stop", "convergence"} <= set(texts(figure))


def test_without_an_early_stop_only_convergence_is_marked():
    figure = draw_levels(SCORES, COUNTS)
    assert stop_of(figure, "early stop") == []
    assert stop_of(figure, "convergence") == [3, 3]
    assert "early stop" not in texts(figure)


def test_the_given_scores_are_drawn_by_level():
    metrics, counts = draw_levels(SCORES, COUNTS).axes
    drawn = {line.get_label(): line.get_ydata() for line in metrics.lines}
    np.testing.assert_allclose(drawn["pairwise F"], [s.pairwise.f for s in SCORES])
    np.testing.assert_allclose(drawn["BCubed F"], [s.bcubed.f for s in SCORES])
    np.testing.assert_allclose(drawn["NMI"], [s.nmi for s in SCORES])
    drawn = {line.get_label(): line.get_ydata() for line in counts.lines}
    assert list(drawn["clusters"]) == COUNTS
    assert list(drawn["true identities"]) == [10, 10]


def test_without_identities_only_the_numbers_of_clusters_are_drawn():
    (counts,) = draw_levels(None, COUNTS, 0).axes
    assert legend_names(counts) == ["clusters"]


@pytest.mark.parametrize("counts", [[1], [7, 7, 7], [1_000_000, 999_999], [40, 35], [9, 1]])
def test_the_axis_of_clusters_covers_every_value_and_has_two_ticks(counts):
    (axes,) = draw_levels(None, counts).axes
    low, high = axes.get_ylim()
    assert low <= min(counts) <= max(counts) <= high
    assert len([tick for tick in axes.get_yticks() if low <= tick <= high]) >= 2


def test_levels_of_different_lengths_are_refused():
    with pytest.raises(SettingError, match="3 scores for 4 levels"):
        draw_levels(SCORES[:3], COUNTS)
    with pytest.raises(SettingError, match="early_stop_level=4 of 4 levels"):
        draw_levels(SCORES, COUNTS, 4)
    with pytest.raises(SettingError, match="one or more levels"):
        draw_levels(None, [])


def test_the_bins_of_sizes_double():
    labels = np.repeat(np.arange(6), [1, 2, 3, 4, 7, 8])
    (axes,) = draw_sizes(labels).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1", "2–3", "4–7", "8–15"]
    assert [bar.get_height() for bar in axes.patches] == [1, 2, 2, 1]
    assert axes.get_yscale() == "log"


def test_true_sizes_are_drawn_next_to_those_of_the_clusters():
    (axes,) = draw_sizes(LEVELS[0], TRUE).axes
    assert legend_names(axes) == ["clusters (30)", "true identities (10)"]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [0, 30, 0, 0, 0, 10]


def test_training_draws_every_loss_against_its_epoch():
    (axes,) = draw_training(HISTORY).axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert set(drawn) == {"total", "connectivity", "density"}
    np.testing.assert_allclose(drawn["density"], [r["density_loss"] for r in HISTORY])
    np.testing.assert_allclose(axes.lines[0].get_xdata(), range(1, 21))


def test_training_draws_the_measured_validation_scores_and_marks_the_best():
    history = [dict(r) for r in HISTORY]
    for epoch, score in ((5, 0.6), (10, 0.9), (15, 0.8)):
        history[epoch - 1]["val_bcubed_f"] = score
    _, axes = draw_training(history).axes
    assert list(axes.lines[0].get_xdata()) == [5, 10, 15]
    assert (axes.lines[1].get_xdata()[0], axes.lines[1].get_ydata()[0]) == (10, 0.9)
    assert "best 0.900" in legend_names(axes)


@pytest.mark.parametrize(
    "extra",
    [{"loss": float("nan")}, {"loss": None}, {"loss": 0.0}, {"density_loss": float("inf")}],
)
def test_training_draws_around_values_that_are_not_finite_or_zero(extra, tmp_path):
    plot_training([*HISTORY, {**HISTORY[-1], "epoch": 21, **extra}], tmp_path / "t.png")


def test_a_single_epoch_is_visible(tmp_path):
    figure = draw_training(HISTORY[:1])
    assert all(line.get_marker() == "o" for line in figure.axes[0].lines)


def test_a_history_without_epochs_is_refused():
    for history in ([], [{"loss": 1.0}]):
        with pytest.raises(SettingError, match="expected one for each epoch"):
            draw_training(history)


def test_the_sheet_shows_the_images_of_its_clusters(thumbs):
    sheet = sheet_of(draw_contact_sheet(thumbs, [np.array([7, 3]), np.array([11])]))
    scale = round(84 / 8)
    cell_height, cell_width = sheet.shape[0] // 2, sheet.shape[1] // 2
    for row, line, column in ((7, 0, 0), (3, 0, 1), (11, 1, 0)):
        cell = sheet[
            line * cell_height : (line + 1) * cell_height,
            column * cell_width : (column + 1) * cell_width,
        ]
        top = (cell_height - 8 * scale) // 2
        left = (cell_width - 8 * scale) // 2
        shown = cell[top : top + 8 * scale : scale, left : left + 8 * scale : scale, 0]
        np.testing.assert_array_equal(shown, thumbs[row])
    assert (sheet[cell_height:, cell_width:] == 255).all()


def test_frames_show_the_identities_of_a_row(thumbs):
    pure = sheet_of(draw_contact_sheet(thumbs, [np.arange(6)], true=TRUE))
    mixed = sheet_of(draw_contact_sheet(thumbs, [np.arange(8)], true=TRUE))
    plain = sheet_of(draw_contact_sheet(thumbs, [np.arange(8)]))
    assert has_colour(pure, BLUE)
    assert not has_colour(pure, VERMILION)
    assert has_colour(mixed, BLUE)
    assert has_colour(mixed, VERMILION)
    assert not has_colour(plain, BLUE)


def test_one_wrong_image_in_a_large_cluster_is_shown():
    true = np.zeros(100, dtype=np.int64)
    true[77] = 1
    chosen = choose_members(np.arange(100), 5, true)
    assert len(chosen) == 5
    assert chosen.tolist()[-1] == 77
    assert choose_members(np.arange(100), 5).tolist() == [0, 1, 2, 3, 4]
    assert sorted(choose_members(np.arange(70, 80), 50, true)) == list(range(70, 80))


def test_rows_are_described_or_titled(thumbs):
    clusters = [np.arange(8), np.array([20])]
    described = texts(draw_contact_sheet(thumbs, clusters, true=TRUE))
    assert "8 images\n2 identities: 6 + 2" in described
    assert "1 image\n1 identity" in described
    titled = texts(draw_contact_sheet(thumbs, clusters, titles=["first", "second"]))
    assert titled == ["first", "second"]


def test_titles_with_dollars_or_unknown_letters_are_drawn_without_a_warning(thumbs, tmp_path):
    titles = ["price $x_{$", "文字"]
    plot_contact_sheet(thumbs, [np.arange(3)] * 2, tmp_path / "sheet.png", titles=titles)


def test_colour_images_keep_their_colour():
    thumbs = np.zeros((2, 6, 4, 3), dtype=np.uint8)
    thumbs[1] = (200, 10, 20)
    sheet = sheet_of(draw_contact_sheet(thumbs, [np.array([0, 1])]))
    assert has_colour(sheet, (200, 10, 20))


def test_the_mistakes_of_a_clustering_make_a_sheet(thumbs, tmp_path):
    mistakes = worst_mistakes(TRUE, LEVELS[3], 3)
    path = plot_contact_sheet(thumbs, mistakes, tmp_path / "mistakes.png", None, 4, TRUE)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"thumbs": np.zeros((60, 8, 8))}, "float64"),
        ({"thumbs": np.zeros((60, 8), dtype=np.uint8)}, r"shape \(60, 8\)"),
        ({"thumbs": None}, "NoneType"),
        ({"clusters": []}, "no cluster to draw"),
        ({"clusters": [np.array([], dtype=int)]}, "empty one"),
        ({"clusters": [np.array([60])]}, "expected 0 to 59"),
        ({"clusters": [np.array([-1])]}, "expected 0 to 59"),
        ({"per_cluster": 0}, "per_cluster=0"),
        ({"titles": ["a", "b"]}, "2 titles for 1 clusters"),
        ({"true": np.arange(59)}, "59 true labels for 60 images"),
    ],
)
def test_a_sheet_that_cannot_be_drawn_is_refused(change, message, thumbs):
    arguments = {"thumbs": thumbs, "clusters": [np.arange(3)], **change}
    with pytest.raises(SettingError, match=message):
        draw_contact_sheet(**arguments)
