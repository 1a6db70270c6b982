import numpy as np
import pytest

from hilander import HiLander
from hilander.cli.main import main
from hilander.hierarchy.equal_points import (
    FEWEST_DISTINCT,
    drop_equal_points,
    merge_equal_points,
    restore_equal_points,
    spread_step,
)
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def once():
    """Identities that are not quite easy to tell apart."""
    return make_identities(n_identities=25, size=10, dim=24, spread=0.8, seed=3)


def copy_some(points, labels, share, seed=0):
    """The same with copies of some, in another order; and whose copy each is."""
    rng = np.random.default_rng(seed)
    again = rng.choice(len(points), round(share * len(points)), replace=False)
    source = rng.permutation(np.concatenate([np.arange(len(points)), again]))
    return points[source], labels[source], source


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_copies_change_nothing_for_the_others_and_stay_with_their_like(once, share):
    points, labels = once
    box = HiLander.pretrained()
    alone = box.predict(points)
    copied, _, source = copy_some(points, labels, share)
    found = box.predict(copied)
    _, place = np.unique(source, return_index=True)
    # The order of points decides ties only.
    together = found[:, None] == found[None, :]
    expected = alone[source][:, None] == alone[source][None, :]
    assert (together == expected).mean() > 0.995
    np.testing.assert_array_equal(found, found[place][source])


def test_the_first_step_holds_all_points_and_copies_hang_from_the_first(once):
    points, labels, source = copy_some(*once, 0.5)
    distinct, copies = merge_equal_points(points)
    assert len(distinct) == len(once[0])
    steps = list(walk_levels(distinct, LabelScorer(labels[copies.first]), Rules(k=5)))
    whole = spread_step(steps[0], copies)
    n = len(points)
    assert whole.graph.neighbours.shape == (n, 5)
    assert len(whole.nodes) == n
    is_copy = copies.first[copies.group] != np.arange(n)
    assert is_copy.sum() == n - len(distinct)
    np.testing.assert_array_equal(whole.parents.index[is_copy], copies.first[copies.group[is_copy]])
    assert (whole.parents.linkage[is_copy] == 1).all()
    np.testing.assert_array_equal(source[whole.graph.neighbours[is_copy, 0]], source[is_copy])
    cosine = np.einsum("id,ijd->ij", points, points[whole.graph.neighbours])
    np.testing.assert_allclose(whole.graph.affinity, cosine, atol=1e-5)
    same = labels[whole.graph.neighbours] == labels[:, None]
    np.testing.assert_array_equal(whole.scores.linkage, same)
    hierarchy = Hierarchy.of_steps(restore_equal_points(iter(steps), copies))
    np.testing.assert_array_equal(
        hierarchy.labels(-1)[:, None] == hierarchy.labels(-1), labels[:, None] == labels
    )


def test_few_copies_few_points_and_large_ones_are_shown_all(once, monkeypatch):
    points, labels = once
    twice = np.concatenate([points, points])
    assert merge_equal_points(twice)[1] is not None
    assert merge_equal_points(points)[1] is None
    assert merge_equal_points(np.concatenate([points, points[:1]]))[1] is None
    assert merge_equal_points(np.repeat(points[: FEWEST_DISTINCT - 1], 2, axis=0))[1] is None
    assert merge_equal_points(twice, keep=True)[1] is None
    assert drop_equal_points(twice, np.tile(labels, 2), keep=True)[0] is twice
    monkeypatch.setattr("hilander.hierarchy.equal_points._MOST_BYTES", points.nbytes - 1)
    assert merge_equal_points(twice)[1] is None


def test_copies_of_one_identity_are_not_learned_from_twice(once):
    points, labels = once
    copied, names, _ = copy_some(points, labels, 0.5)
    taught, kept = drop_equal_points(copied, names)
    assert len(taught) == len(points)
    np.testing.assert_array_equal(np.bincount(kept), np.bincount(labels))
    # A copy under another name is kept: one of the two names is wrong, and who knows which.
    other = np.where(np.arange(len(names)) == 0, (names[0] + 1) % 25, names)
    assert len(drop_equal_points(np.repeat(copied, 2, axis=0), np.r_[names, other])[0]) > 250


def test_an_identity_of_copies_alone_leaves_all_as_they_are(once):
    points, labels = once
    points = points.copy()
    points[labels == 0] = points[0]
    assert drop_equal_points(points, labels)[0] is points


def test_a_run_of_photos_saved_twice_can_be_looked_at(once, tmp_path, capsys):
    points, labels, _ = copy_some(*once, 0.5)
    np.savez(tmp_path / "album.npz", features=points, labels=labels)
    run = f"{tmp_path}/run"
    assert main(["cluster", f"{tmp_path}/album.npz", "-o", run]) == 0
    assert "375 points in " in capsys.readouterr().out
    assert main(["doubts", run]) == 0
    assert main(["report", run, "-o", f"{tmp_path}/report.html"]) == 0
    assert (tmp_path / "report.html").stat().st_size > 1000
    assert Hierarchy.load(run).n_points == 375


def test_a_graph_of_all_points_is_used_as_it_is(once):
    twice = np.concatenate([once[0]] * 2)
    graph = build_knn_graph(twice, 15)
    step = next(HiLander.pretrained().walk(twice, graph=graph))
    np.testing.assert_array_equal(step.graph.neighbours, graph.neighbours)


def test_the_paper_method_sees_copies_as_published(once):
    twice, names = np.concatenate([once[0]] * 2), np.tile(once[1], 2)
    model = HiLander(method="paper", epochs=1, hidden=8, p_tau=0.5).fit(twice, names)
    step = next(model.walk(twice))
    assert (step.graph.affinity[:, 0] > 0.99999).all()
