import numpy as np
import pytest

from benchmarks.constraints import (
    FACES,
    METHODS,
    Drawn,
    apply_afterwards,
    draw_pairs,
    draw_photos,
    format_rows,
)

LABELS = np.repeat(np.arange(20), 6)


def test_drawn_pairs_are_true_and_half_of_each_kind():
    drawn = draw_pairs(LABELS, 40, np.random.default_rng(0))
    assert len(drawn.must) == len(drawn.cannot) == 20
    assert (LABELS[drawn.must[:, 0]] == LABELS[drawn.must[:, 1]]).all()
    assert (LABELS[drawn.cannot[:, 0]] != LABELS[drawn.cannot[:, 1]]).all()


def test_a_photo_shows_five_points_of_five_identities():
    photo = draw_photos(LABELS, np.random.default_rng(0)).photo
    sizes = np.bincount(photo[photo >= 0])
    assert len(sizes) > 10
    assert (sizes == FACES).all()
    for one in range(len(sizes)):
        assert len(np.unique(LABELS[photo == one])) == FACES


@pytest.mark.parametrize("join_clusters", [True, False])
def test_statements_that_are_applied_afterwards_hold(join_clusters):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(120, 8)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = rng.integers(0, 30, 120)
    must = np.array([[0, 1], [2, 3]])
    photo = np.full(120, -1)
    photo[10:15] = 0
    drawn = Drawn(must, np.array([[20, 21]]), photo)
    labels = apply_afterwards(found, points, drawn, join_clusters=join_clusters)
    assert drawn.build(120).count_broken(labels) == {"together": 0, "apart": 0}


def test_the_table_has_a_column_for_each_method_and_counts_what_is_broken():
    rows = [
        {"dataset": "faces", "given": "photos", "seed": 0, "method": method, "broken": at,
         "pairwise_f": 0.5, "bcubed_f": 0.25}
        for at, method in enumerate(METHODS)
    ]  # fmt: skip
    table = format_rows(rows)
    assert "| faces | photos | .500 / .250 | .500 / .250 | .500 / .250 | .500 / .250 | 3 |" in table
