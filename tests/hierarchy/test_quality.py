import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.hierarchy.quality import QUALITY_FILE, measure_quality, write_quality
from hilander.io.parquet import read_parquet_column


def scene(seed=0, n=60, k=5, n_clusters=7):
    rng = np.random.default_rng(seed)
    neighbours = np.stack([rng.choice(np.delete(np.arange(n), i), k, False) for i in range(n)])
    labels = np.concatenate([np.arange(n_clusters), rng.integers(n_clusters - 1, size=n - 7)])
    return neighbours, rng.uniform(size=(n, k)).astype(np.float32), labels, rng


def test_quality_is_the_harmonic_mean_of_cohesion_and_separation_edge_by_edge():
    neighbours, linkage, labels, _ = scene()
    found = measure_quality(neighbours, linkage, labels)
    for cluster in range(7):
        members = np.flatnonzero(labels == cluster)
        n, n_in, l_in, s_in, s_out = len(members), 0, 0.0, 0.0, 0.0
        for point in members:
            for other, p in zip(neighbours[point], linkage[point].astype(float), strict=True):
                if labels[other] == cluster:
                    n_in, l_in, s_in = n_in + 1, l_in + p, s_in + p * p
                else:
                    s_out += p * p
        cohesion, separation = (n + l_in) / (n + n_in), (n + s_in) / (n + s_in + s_out)
        assert found.size[cluster] == n
        assert found.cohesion[cluster] == pytest.approx(cohesion, rel=1e-5)
        assert found.separation[cluster] == pytest.approx(separation, rel=1e-5)
        harmonic = 2 / (1 / cohesion + 1 / separation)
        assert found.quality[cluster] == pytest.approx(harmonic, rel=1e-5)


def test_perfect_links_give_a_perfect_cluster_and_a_single_point_is_one_identity():
    neighbours, _, labels, _ = scene()
    same = (labels[neighbours] == labels[:, None]).astype(np.float32)
    found = measure_quality(neighbours, same, labels)
    np.testing.assert_array_equal(found.quality, 1)
    wrong = measure_quality(neighbours, 1 - same, labels)
    assert (wrong.quality[wrong.size > 3] < 0.7).all()
    assert (wrong.cohesion[wrong.size == 1] == 1).all()


def test_a_mixed_cluster_has_less_cohesion_and_a_split_one_less_separation():
    rng = np.random.default_rng(3)
    truth = np.repeat(np.arange(6), 10)
    neighbours = np.stack(
        [
            np.concatenate([
                rng.choice(np.setdiff1d(np.flatnonzero(truth == truth[i]), [i]), 5, False),
                rng.choice(np.flatnonzero(truth != truth[i]), 2, False),
            ])
            for i in range(60)
        ]
    )  # fmt: skip
    linkage = np.where(truth[neighbours] == truth[:, None], 0.9, 0.05).astype(np.float32)
    labels = truth.copy()
    labels[truth == 1] = 0  # 0 holds two identities
    labels[np.flatnonzero(truth == 3)[:5]] = 1  # 1 is half of 3
    found = measure_quality(neighbours, linkage, labels)
    right = [2, 4, 5]
    assert found.cohesion[0] < found.cohesion[right].min()
    assert found.separation[[1, 3]].max() < found.separation[right].min()
    assert found.quality[[0, 1, 3]].max() < found.quality[right].min()


def test_renumbering_the_points_changes_nothing():
    neighbours, linkage, labels, rng = scene(4)
    order = rng.permutation(len(labels))
    place = np.argsort(order)
    one = measure_quality(neighbours, linkage, labels)
    two = measure_quality(place[neighbours[order]], linkage[order], labels[order])
    np.testing.assert_allclose(one.quality, two.quality, rtol=1e-6)


def test_a_graph_of_other_points_is_refused():
    neighbours, linkage, labels, _ = scene()
    with pytest.raises(SettingError, match="give the graph of the points"):
        measure_quality(neighbours, linkage, labels[:-1])


def test_the_file_has_a_row_for_each_cluster_with_the_id_of_its_peak(hierarchy, tmp_path):
    rng = np.random.default_rng(0)
    neighbours = rng.integers(hierarchy.n_points, size=(hierarchy.n_points, 3))
    linkage = rng.uniform(size=neighbours.shape).astype(np.float32)
    ids = np.array([f"p{number}" for number in range(hierarchy.n_points)])
    write_quality(hierarchy, neighbours, linkage, tmp_path, ids)

    def column(name):
        return read_parquet_column(tmp_path / QUALITY_FILE, name, (name,))

    found = measure_quality(neighbours, linkage, hierarchy.labels(-1))
    np.testing.assert_array_equal(column("cluster"), np.arange(hierarchy.n_clusters(-1)))
    np.testing.assert_array_equal(column("peak"), ids[hierarchy.peaks(-1)])
    for name in ("size", "cohesion", "separation", "quality"):
        np.testing.assert_array_equal(column(name), getattr(found, name))
