"""Pairs of faces that are certain: fewer in larger sets, never within a photo."""

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from hilander.embedders.faces.certain_pairs import certain_distance, find_certain_pairs


def people(n_people, n_each, spread, seed=0):
    """Faces of people who are 0.8 apart, as dlib's are."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_people, 128)) * 0.8 / np.sqrt(2 * 128)
    noise = rng.normal(size=(n_people * n_each, 128)) * spread / np.sqrt(2 * 128)
    return (np.repeat(centres, n_each, axis=0) + noise).astype(np.float32)


def join(pairs, n):
    links = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(links, directed=False)


def test_the_bound_falls_with_the_size_of_the_set_and_ends():
    bounds = [certain_distance(n) for n in (2, 10, 30, 100, 200, 1000, 10**6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == 0.5
    assert 0.35 < certain_distance(100) < 0.42
    assert bounds[-2:] == [0.0, 0.0]


def test_a_small_set_of_one_person_is_joined_whole():
    faces = people(1, 25, 0.25)
    pairs = find_certain_pairs(faces, np.arange(25))
    assert join(pairs, 25)[0] == 1
    assert len(pairs) == 24  # no circle


def test_people_are_not_joined_with_each_other():
    faces = people(6, 8, 0.25)
    n_groups, group = join(find_certain_pairs(faces, np.arange(48)), 48)
    assert n_groups == 6
    assert (group == np.repeat(group[::8], 8)).all()


def test_two_faces_of_one_photo_are_never_joined_also_not_through_others():
    faces = people(1, 9, 0.2)
    photos = np.array([0, 0, 1, 1, 2, 3, 4, 5, 6])
    _, group = join(find_certain_pairs(faces, photos), 9)
    assert group[0] != group[1]
    assert group[2] != group[3]
    assert len(set(group)) == 2


def test_a_large_set_is_left_to_the_model():
    assert not len(find_certain_pairs(people(1, 400, 0.01), np.arange(400)))
