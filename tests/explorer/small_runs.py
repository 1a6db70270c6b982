"""Small run folders, written with a scorer that makes some mistakes."""

import json

import numpy as np

from hilander.graph.same_identity import estimate_by_links
from hilander.graph.scores import EdgeScores, edge_density
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.run_extras import RunExtras, write_extras
from hilander.hierarchy.storage import write_hierarchy
from hilander.io.writing import folder_writer, write_json

# A label that becomes the page's title if a browser takes it for HTML.
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
N_POINTS = 252


def make_points(seed, n_identities=14, per_identity=18, dim=12):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_identities, dim))
    labels = rng.permutation(np.repeat(np.arange(n_identities), per_identity))
    points = centres[labels] + rng.normal(scale=0.55, size=(len(labels), dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32), labels


class NoisyScorer:
    """The ground truth with noise: the linkage of most edges is on the right side of 0.5."""

    def __init__(self, labels, seed):
        self.labels = labels
        self.rng = np.random.default_rng(seed)

    def bind_points(self, features):
        """The labels are all it needs."""

    def __call__(self, graph, nodes):
        own = self.labels[nodes.point]
        sign = np.where(own[graph.neighbours] == own[:, None], 1.0, -1.0)
        logit = 1.6 * sign + self.rng.normal(0, 1.2, graph.affinity.shape)
        linkage = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))

    def estimate_merges(self, pairs):
        return estimate_by_links(pairs)


def cluster_noisily(points, labels, seed=0, p_tau=0.6, max_levels=4):
    score = NoisyScorer(labels, seed)
    steps = list(walk_levels(points, score, Rules(k=6, p_tau=p_tau), max_levels=max_levels))
    return Hierarchy.of_steps(steps), steps[0]


def write_graph(folder, first):
    np.savez(
        folder / "graph.npz",
        neighbours=first.graph.neighbours,
        affinity=first.graph.affinity,
        linkage=first.scores.linkage,
    )


def write_run(folder, seed=0, *, ids=None, bare=False, **rules):
    """Write a run of 252 points; a bare one has the hierarchy and ids alone."""
    points, labels = make_points(seed)
    hierarchy, first = cluster_noisily(points, labels, seed, **rules)
    names = np.array([f"item-{row:04d}" for row in range(len(points))]) if ids is None else ids
    rng = np.random.default_rng(seed)
    with folder_writer(folder, "run") as inside:
        write_hierarchy(hierarchy, inside, names)
        if bare:
            return folder
        write_graph(inside, first)
        patterns = rng.integers(0, 255, (labels.max() + 1, 10, 10)).astype(np.uint8)
        names_of = np.array([HOSTILE if label == 0 else f"kind {label}" for label in labels])
        extras = RunExtras(points, patterns[labels], {"label": names_of})
        write_extras(inside, hierarchy, extras)
        write_json(
            inside / "run.json",
            {
                "settings": {"k": 6, "p_tau": 0.6},
                "stages": [{"stage": "read", "seconds": 0.5}, {"stage": "level_0", "seconds": 2}],
                "versions": {"hilander": "0.1.0"},
            },
        )
    return folder


def forget_digest(folder, name):
    """Let a test change a file of a run: the marker no longer says how the file was written."""
    marker = folder / "hilander.json"
    content = json.loads(marker.read_text(encoding="utf-8"))

    def without(value):
        if isinstance(value, dict):
            return {key: without(one) for key, one in value.items() if key != name}
        return value

    marker.write_text(json.dumps(without(content)), encoding="utf-8")
