from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import figures
from benchmarks.figures import (
    SETTINGS,
    _colour_classes,
    _draw_images,
    _peaks_of_levels,
    draw_early_stop,
    draw_hierarchy,
    draw_sensitivity,
    measure_sensitivity,
    train_paper_model,
)
from benchmarks.rows import append_row
from benchmarks.suite import Suite
from hilander.comparison.pair import Pair, prepare_pair
from hilander.metrics.canvas import new_figure
from hilander.synthetic.identities import make_identities

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def pair() -> Pair:
    train = make_identities(n_identities=15, size=12, spread=0.6, seed=0)
    test = make_identities(n_identities=12, size=12, spread=0.6, seed=1)
    return prepare_pair("small", train, test)


def train(pair: Pair, **parameters):
    return train_paper_model(pair, epochs=2, hidden=16, p_tau=0.5, **parameters)


def test_early_stopping_is_drawn_level_by_level(pair: Pair) -> None:
    panels = draw_early_stop(pair, train(pair)).axes
    assert len(panels) >= 2


def test_sensitivity_has_a_row_for_each_value_and_a_panel_for_each_setting(pair: Pair) -> None:
    rows = list(measure_sensitivity(pair, train))
    assert {row["setting"]: row["value"] for row in rows} == {
        setting: values[-1] for setting, values in SETTINGS.items()
    }
    assert len(rows) == sum(len(values) for values in SETTINGS.values())
    older = [row | {"bcubed_f": 0.0} for row in rows]
    figure = draw_sensitivity(older + rows)
    assert [axes.get_xlabel() for axes in figure.axes] == ["k", "p_tau", "aggregation", "encoder"]
    by_k = [row["bcubed_f"] for row in rows if row["setting"] == "k"]
    assert figure.axes[0].lines[1].get_ydata().tolist() == by_k


def test_the_hierarchy_has_a_map_for_the_points_and_each_level(pair: Pair) -> None:
    model = train(pair)
    images = np.zeros((len(pair.test), 5, 5), dtype=np.uint8)
    figure = draw_hierarchy(pair, model, images)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == f"points: {len(pair.test)}"
    assert titles[-1] == "peaks of the last level"
    assert len(titles) == model.cluster(pair.test).n_levels + 2


def test_images_of_coloured_classes_come_first_and_are_framed() -> None:
    labels = np.repeat(np.arange(10), [5, 5, 5, 5, 5, 5, 5, 5, 2, 2])
    colours = _colour_classes(labels)
    assert list(colours) == list(range(8))
    axes = new_figure(4, 2).add_subplot()
    images = np.repeat(labels.astype(np.uint8), 9).reshape(-1, 3, 3)
    peaks = np.array(
        [43, 0, 1, 38]
    )  # two of class 0, one of class 7, one of a class without colour
    _draw_images(axes, images, labels, peaks, colours)
    assert axes.images[0].get_array()[0, ::3].tolist() == [0, 0, 7, 9]
    assert [frame.get_x() for frame in axes.patches] == [-0.5, 2.5, 5.5]
    assert axes.patches[0].get_edgecolor()[:3] == colours[0]
    assert axes.patches[2].get_edgecolor()[:3] == colours[7]


def test_the_peaks_of_a_level_are_those_among_the_drawn_points(pair: Pair) -> None:
    hierarchy = train(pair).cluster(pair.test)
    every = _peaks_of_levels(hierarchy, np.arange(len(pair.test)))
    some = np.arange(0, len(pair.test), 2)
    for all_peaks, drawn in zip(every, _peaks_of_levels(hierarchy, some), strict=True):
        assert sorted(some[drawn]) == sorted(set(all_peaks) & set(some))


def test_sensitivity_is_drawn_from_existing_rows_without_training(tmp_path, monkeypatch) -> None:
    rows = tmp_path / "rows.jsonl"
    for name in ("glyphs", "other"):
        for setting, values in SETTINGS.items():
            for value in values:
                row = {"dataset": name, "setting": setting, "value": value}
                append_row(rows, row | {"pairwise_f": 0.5, "bcubed_f": 0.5})
    drawn = []
    monkeypatch.setattr(figures, "ROWS", rows)
    monkeypatch.setattr(figures, "load_pair", lambda name: SimpleNamespace(name=name))
    monkeypatch.setattr(figures, "measure_sensitivity", None)  # measuring anything would fail
    monkeypatch.setattr(
        figures, "draw_sensitivity", lambda some: drawn.extend(some) or new_figure(1, 1)
    )
    figures.draw_all(Suite(()), ["sensitivity"], "glyphs", tmp_path, draw_only=True)
    assert (tmp_path / "sensitivity.png").is_file()
    assert {row["dataset"] for row in drawn} == {"glyphs"}
    assert len(drawn) == sum(len(values) for values in SETTINGS.values())
