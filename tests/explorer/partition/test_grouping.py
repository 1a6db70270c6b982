"""Clusters of a level, and of the last level as reviewed."""

import numpy as np
import pytest

from hilander.errors import LevelError, SettingError


def test_sizes_and_peaks_of_reviewed_clusters_agree_with_their_members(explorer):
    rng = np.random.default_rng(1)
    for _ in range(25):
        groups = np.unique(explorer.review.state.labels)
        rows = rng.choice(explorer.run.n_points, 4, replace=False).tolist()
        try:
            if rng.random() < 0.5:
                explorer.act("merge", {"groups": rng.choice(groups, 2, replace=False).tolist()})
            else:
                explorer.act("move", {"rows": rows})
        except SettingError:
            continue
        grouping = explorer.reviewed()
        counted = np.bincount(grouping.labels, minlength=grouping.n_groups)
        np.testing.assert_array_equal(grouping.sizes, counted)
        alive = np.flatnonzero(grouping.alive)
        np.testing.assert_array_equal(grouping.labels[grouping.peaks[alive]], alive)
        for group in alive.tolist():
            members = grouping.members(group)
            assert sorted(members) == sorted(np.flatnonzero(grouping.labels == group))
            assert members[0] == grouping.peaks[group]
            density = explorer.run.hierarchy.density[members[1:]]
            assert (np.diff(density) <= 0).all()


@pytest.mark.parametrize("level", ["7", "-1", "", "reviewe", "²", "9" * 40])
def test_an_unknown_level_is_an_error(explorer, level):
    with pytest.raises(LevelError, match="does not exist"):
        explorer.grouping(level)
