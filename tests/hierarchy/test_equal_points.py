"""Equal points in clustering: merged before the first level and put back into it."""

import numpy as np
import pytest

from hilander import HiLander
from hilander.cli.main import main
from hilander.embeddings.equal_rows import merge_equal_rows
from hilander.hierarchy.equal_points import restore_equal_points
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def once():
    """Identities that overlap a little."""
    return make_identities(n_identities=25, size=10, dim=24, spread=0.8, seed=3)


def repeat_some(points, labels, share, seed=0):
    """The points with some repeated, in another order, and the original of each."""
    rng = np.random.default_rng(seed)
    again = rng.choice(len(points), round(share * len(points)), replace=False)
    source = rng.permutation(np.concatenate([np.arange(len(points)), again]))
    return points[source], labels[source], source


@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_repeated_points_join_their_original_and_do_not_change_other_clusters(once, share):
    points, labels = once
    model = HiLander.pretrained()
    alone = model.predict(points)
    repeated, _, source = repeat_some(points, labels, share)
    found = model.predict(repeated)
    _, place = np.unique(source, return_index=True)
    # The order of the points decides ties only.
    together = found[:, None] == found[None, :]
    expected = alone[source][:, None] == alone[source][None, :]
    assert (together == expected).mean() > 0.995
    np.testing.assert_array_equal(found, found[place][source])


def test_the_first_step_has_all_points_and_repeated_ones_have_the_first_as_parent(once):
    points, labels, source = repeat_some(*once, 0.5)
    distinct, equal = merge_equal_rows(points)
    assert len(distinct) == len(once[0])
    steps = list(walk_levels(distinct, LabelScorer(labels[equal.first]), Rules(k=5)))
    whole = next(restore_equal_points(iter(steps), equal))
    n = len(points)
    assert whole.graph.neighbours.shape == (n, 5)
    assert len(whole.nodes) == n
    repeated = equal.is_repeated
    assert repeated.sum() == n - len(distinct)
    np.testing.assert_array_equal(whole.parents.index[repeated], equal.first_of_row[repeated])
    assert (whole.parents.linkage[repeated] == 1).all()
    np.testing.assert_array_equal(source[whole.graph.neighbours[repeated, 0]], source[repeated])
    cosine = np.einsum("id,ijd->ij", points, points[whole.graph.neighbours])
    np.testing.assert_allclose(whole.graph.affinity, cosine, atol=1e-5)
    same = labels[whole.graph.neighbours] == labels[:, None]
    np.testing.assert_array_equal(whole.scores.linkage, same)
    hierarchy = Hierarchy.of_steps(restore_equal_points(iter(steps), equal))
    np.testing.assert_array_equal(
        hierarchy.labels(-1)[:, None] == hierarchy.labels(-1), labels[:, None] == labels
    )


def test_commands_work_on_a_run_with_equal_points(once, tmp_path, capsys):
    points, labels, _ = repeat_some(*once, 0.5)
    np.savez(tmp_path / "album.npz", features=points, labels=labels)
    run = f"{tmp_path}/run"
    assert main(["cluster", f"{tmp_path}/album.npz", "-o", run]) == 0
    assert "375 points in " in capsys.readouterr().out
    assert main(["doubts", run]) == 0
    assert main(["report", run, "-o", f"{tmp_path}/report.html"]) == 0
    assert (tmp_path / "report.html").stat().st_size > 1000
    assert Hierarchy.load(run).n_points == 375


def test_a_given_graph_of_all_points_is_used_unchanged(once):
    twice = np.concatenate([once[0]] * 2)
    graph = build_knn_graph(twice, 15)
    step = next(HiLander.pretrained().walk(twice, graph=graph))
    np.testing.assert_array_equal(step.graph.neighbours, graph.neighbours)


def test_the_paper_method_keeps_equal_points(once):
    twice, names = np.concatenate([once[0]] * 2), np.tile(once[1], 2)
    model = HiLander(method="paper", epochs=1, hidden=8, p_tau=0.5).fit(twice, names)
    step = next(model.walk(twice))
    assert (step.graph.affinity[:, 0] > 0.99999).all()
