import numpy as np
import pytest

from benchmarks.figures import draw_early_stop, draw_hierarchy, draw_sensitivity, train_paper_model
from hilander.comparison import Pair, prepare_pair
from hilander.data import make_identities

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


def test_sensitivity_has_a_panel_for_each_setting(pair: Pair) -> None:
    figure = draw_sensitivity(pair, train)
    assert [axes.get_xlabel() for axes in figure.axes] == ["k", "p_tau", "aggregation", "encoder"]
    assert len(figure.axes[0].lines) == 2


def test_the_hierarchy_has_a_map_for_the_points_and_each_level(pair: Pair) -> None:
    model = train(pair)
    images = np.zeros((len(pair.test), 5, 5), dtype=np.uint8)
    figure = draw_hierarchy(pair, model, images)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == f"points: {len(pair.test)}"
    assert titles[-1] == "peaks of the last level"
    assert len(titles) == model.cluster(pair.test).n_levels + 2
