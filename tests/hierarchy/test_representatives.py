"""The medoid of each cluster."""

import numpy as np

from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.representatives import find_medoids
from hilander.synthetic.identities import make_identities


def test_a_representative_is_the_member_most_similar_to_all_members():
    X, _ = make_identities(n_identities=30, size=12, dim=8, spread=0.6, seed=2)
    hierarchy = HiLander.pretrained(device="cpu").cluster(X)
    points = hierarchy.basis.features
    for level in (0, -1):
        found, labels = hierarchy.representatives(level), hierarchy.labels(level)
        assert len(found) == hierarchy.n_clusters(level)
        for cluster, point in enumerate(found):
            members = np.flatnonzero(labels == cluster)
            cosine = (points[members] @ points[members].T).mean(axis=1)
            assert point in members
            assert cosine[members == point] >= cosine.max() - 1e-5


def test_without_embeddings_it_is_the_densest_member():
    X, _ = make_identities(n_identities=10, size=8, dim=16, seed=1)
    hierarchy = HiLander.pretrained(device="cpu").cluster(X)
    plain = Hierarchy(hierarchy.levels)
    for cluster, point in enumerate(plain.representatives()):
        members = plain.labels() == cluster
        assert members[point]
        assert plain.density[point] >= plain.density[members].max() - 1e-5


def test_the_medoid_of_a_line_of_points_is_in_its_middle():
    angle = np.deg2rad([0, 10, 20, 30, 40, 200, 210])
    points = np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)
    found = find_medoids(points, np.array([0, 0, 0, 0, 0, 1, 1]), np.array([0, 5]))
    assert found.tolist() == [2, 5]
