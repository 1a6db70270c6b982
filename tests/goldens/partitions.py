"""Clusterings whose labels are held still, and how they are written anew.

``python -m tests.goldens.partitions`` writes `partitions.json` from the code as it is. Do that only
in a change that is meant to change results, and say so in its message.
"""

import hashlib
import json
import platform
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from hilander import HiLander
from hilander.synthetic.face_like import make_face_like
from hilander.synthetic.glyph_embedding import make_glyph_data
from hilander.synthetic.identities import make_identities

FILE = Path(__file__).parent / "partitions.json"


@contextmanager
def threads(count):
    """Run with so many threads of the BLAS libraries and of torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)


def make_sets():
    """Name -> (training features, training labels, test features)."""
    glyphs = make_glyph_data(seed=0, max_characters=70)
    even = make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=0)
    even_test = make_identities(n_identities=30, size=20, dim=16, spread=0.45, seed=1)[0]
    faces = make_face_like("trillionpairs", scale=0.001, seed=0)
    faces_test = make_face_like("imdb", scale=0.0008, seed=1)[0]
    sizes = [400, *[1] * 30, *range(2, 32)]
    uneven = make_identities(dim=24, spread=0.6, seed=2, sizes=sizes)
    uneven_test = make_identities(dim=24, spread=0.6, seed=3, sizes=sizes)[0]
    # One row in five twice: equal rows, and an identity that has half of the points.
    repeated = np.concatenate([uneven_test, uneven_test[::5]])
    few = make_identities(n_identities=6, size=9, dim=16, spread=0.5, seed=4)[0]
    return {
        "glyphs": (glyphs.train_features, glyphs.train_labels, glyphs.test_features),
        "even": (*even, even_test),
        "faces": (*faces, faces_test),
        "uneven": (*uneven, repeated),
        "few": (*even, few),
    }


MODELS = {
    "pretrained": lambda: HiLander.pretrained(device="cpu"),
    "default": lambda: HiLander(epochs=2, device="cpu"),
    "alone": lambda: HiLander(epochs=2, prior="none", whiten=True, device="cpu"),
    "fine-tuned": lambda: HiLander(
        epochs=2, start="pretrained", prior="none", centre=True, device="cpu"
    ),
    "paper": lambda: HiLander(method="paper", epochs=2, hidden=16, device="cpu"),
    "paper-auto": lambda: HiLander(
        method="paper", epochs=1, hidden=16, features="auto", tune_k=True, encoder="convolution",
        device="cpu",
    ),
}  # fmt: skip
CASES = [
    ("pretrained", "glyphs"),
    ("pretrained", "even"),
    ("pretrained", "faces"),
    ("pretrained", "uneven"),
    ("pretrained", "few"),
    ("default", "glyphs"),
    ("default", "even"),
    ("default", "faces"),
    ("default", "uneven"),
    ("alone", "even"),
    ("fine-tuned", "uneven"),
    ("paper", "glyphs"),
    ("paper", "even"),
    ("paper", "uneven"),
    ("paper-auto", "even"),
]
TWO_THREADS = [("pretrained", "glyphs"), ("default", "faces"), ("paper", "even")]


def cluster(model, data):
    """Fit a model where it learns, and give its hierarchies: of training and of test points."""
    train, labels, test = data
    estimator = MODELS[model]()
    found = {}
    if model != "pretrained":
        estimator.fit(train, labels)
        found["train"] = estimator.hierarchy_
    found["test"] = estimator.cluster(test)
    if model in ("pretrained", "default"):
        for decoder in ("contract", "parents"):
            found[f"test, {decoder}"] = estimator.cluster(test, decoder=decoder)
    return found


def describe(hierarchy):
    """Number of clusters and a hash of the labels of each level, up to renumbering."""
    levels = [hierarchy.labels(level) for level in range(hierarchy.n_levels)]
    return [f"{len(np.unique(labels))} {hash_partition(labels)}" for labels in levels]


def hash_partition(labels):
    """A digest that two labellings share if and only if they are the same partition."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return hashlib.blake2b(rank[inverse].astype("<i8").tobytes(), digest_size=8).hexdigest()


def describe_machine():
    """What the last digits of a sum depend on."""
    return {
        "machine": platform.machine(),
        "processor": describe_processor(),
        "numpy": np.__version__,
        "torch": torch.__version__.partition("+")[0],
    }


def describe_processor():
    """The processor: kernels of BLAS and torch are chosen by it. Empty where it is not known."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    except OSError:
        return platform.processor()
    pairs = [line.partition(":") for line in first.splitlines()]
    facts = {name.strip(): value.strip() for name, _, value in pairs}
    named = [facts.get(name, "") for name in ("model name", "cpu family", "model")]
    wide = [flag for flag in ("avx2", "avx512f") if flag in facts.get("flags", "").split()]
    return " ".join([*named, *wide])


def main():
    """Write `partitions.json` anew."""
    with threads(1):
        sets = make_sets()
    found = {}
    for model, name in CASES:
        with threads(1):
            parts = cluster(model, sets[name])
        found[f"{model} on {name}"] = {part: describe(one) for part, one in parts.items()}
        print(model, name, found[f"{model} on {name}"])
    text = json.dumps({"of": describe_machine(), "partitions": found}, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
