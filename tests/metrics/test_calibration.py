import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.metrics.calibration import (
    Scaling,
    draw_reliability,
    learn_scaling,
    measure_reliability,
    plot_reliability,
    same_identity,
)


def calibrated(n=40_000, seed=0):
    """Calibrated probabilities, and outcomes drawn with them."""
    rng = np.random.default_rng(seed)
    right = rng.beta(0.6, 0.9, size=n)
    return right, rng.random(n) < right


def test_calibrated_probabilities_have_no_error_and_others_have():
    right, outcome = calibrated()
    good = measure_reliability(right, outcome)
    assert good.ece < 0.02
    assert abs(good.bias) < 0.01
    raised = measure_reliability(np.sqrt(right), outcome)
    assert raised.ece > 0.1
    assert raised.bias == pytest.approx(raised.ece, abs=0.01)
    assert raised.brier > good.brier


def test_bins_hold_their_mean_prediction_share_and_count():
    curve = measure_reliability([[0.0, 0.05], [0.52, 1.0]], [[0, 1], [1, 1]], n_bins=4)
    np.testing.assert_array_equal(curve.count, [2, 0, 1, 1])
    np.testing.assert_allclose(curve.predicted, [0.025, np.nan, 0.52, 1.0])
    np.testing.assert_allclose(curve.observed, [0.5, np.nan, 1.0, 1.0])
    assert curve.ece == pytest.approx((2 * 0.475 + 0.48) / 4)
    assert curve.brier == pytest.approx((0.95**2 + 0.48**2) / 4)
    plain = curve.to_dict()
    assert plain["predicted"][1] is None
    assert plain["count"] == [2, 0, 1, 1]


@pytest.mark.parametrize(
    ("probability", "outcome", "n_bins", "message"),
    [
        ([0.1, 0.2], [1], 10, "2 probabilities and 1 outcomes"),
        ([], [], 10, "0 probabilities"),
        ([1.2], [1], 10, "expected 0 to 1"),
        ([float("nan")], [1], 10, "expected 0 to 1"),
        ([0.5], [1], 0, "n_bins=0"),
    ],
)
def test_invalid_probabilities_and_outcomes_are_refused(probability, outcome, n_bins, message):
    with pytest.raises(SettingError, match=message):
        measure_reliability(probability, outcome, n_bins)


@pytest.mark.parametrize(("slope", "offset"), [(0.5, 0.0), (2.0, -1.0), (1.3, 0.8)])
def test_a_known_scaling_is_recovered(slope, offset):
    right, outcome = calibrated()
    distorted = Scaling(slope, offset).apply(right)
    found = learn_scaling(distorted, outcome)
    assert found.slope == pytest.approx(1 / slope, rel=0.1)
    assert found.offset == pytest.approx(-offset / slope, abs=0.1)
    mended = measure_reliability(found.apply(distorted), outcome)
    assert mended.ece < 0.02


def test_scaling_keeps_the_order_and_the_range():
    values = np.linspace(0, 1, 101).astype(np.float32)
    for scaling in (Scaling(0.3, 1.0), Scaling(4.0, -2.0)):
        out = scaling.apply(values)
        assert (np.diff(out) >= 0).all()
        assert out.min() >= 0
        assert out.max() <= 1
    np.testing.assert_allclose(Scaling().apply(values), values, atol=2e-6)


def test_equal_outcomes_give_a_scaling_without_effect():
    assert learn_scaling([0.2, 0.9], [1, 1]) == Scaling()
    with pytest.raises(SettingError, match="2 probabilities and 3 outcomes"):
        learn_scaling([0.2, 0.9], [1, 0, 1])


def test_same_identity_compares_the_labels_of_both_ends():
    same = same_identity(np.array([[1, 2], [0, 2], [0, 1]]), ["a", "b", "a"])
    np.testing.assert_array_equal(same, [[False, True], [False, False], [True, False]])


def test_the_figure_has_a_curve_for_each_name_and_the_diagonal(tmp_path):
    pytest.importorskip("matplotlib")
    right, outcome = calibrated(2000)
    curves = {"one": measure_reliability(right, outcome), "two": measure_reliability(1, True)}
    upper, lower = draw_reliability(curves).axes
    assert len(upper.lines) == 3
    assert len(lower.lines) == 2
    assert any("one (ECE" in text.get_text() for text in upper.get_legend().get_texts())
    path = plot_reliability(curves, tmp_path / "curve.png")
    assert path.stat().st_size > 1000
    with pytest.raises(SettingError, match="no curves"):
        draw_reliability({})
