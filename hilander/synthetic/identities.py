"""Small labelled sets of random identities, for examples and tests."""

from collections.abc import Sequence

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import SettingError


def make_identities(
    n_identities: int = 30,
    size: int = 20,
    dim: int = 32,
    spread: float = 0.35,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
) -> tuple[FloatArray, IntArray]:
    """Make embeddings of identities that lie in random directions.

    Parameters
    ----------
    n_identities : int
        Number of identities.
    size : int
        Embeddings of each identity.
    dim : int
        Number of features.
    spread : float
        Expected length of the noise; an identity's centre has length 1. Two embeddings of one
        identity have a cosine of about 1 / (1 + spread**2): 0.89 for 0.35.
    seed : int
        The same seed gives the same set.
    sizes : sequence of int, optional
        Size of each identity, instead of ``n_identities`` times ``size``.

    Returns
    -------
    features : ndarray of shape (n_samples, dim), float32
        Unit length, in shuffled order.
    labels : ndarray of shape (n_samples,), int64
        Identity of each row, from 0.

    Examples
    --------
    >>> from hilander.synthetic import make_identities
    >>> features, labels = make_identities(n_identities=3, size=4, dim=8)
    >>> features.shape, sorted(set(labels.tolist()))
    ((12, 8), [0, 1, 2])
    """
    counts = [size] * n_identities if sizes is None else list(sizes)
    if not counts or min(counts) < 1 or dim < 1 or spread < 0:
        raise SettingError(
            f"got {len(counts)} identities of sizes from {min(counts, default=0)}, dim={dim}, "
            f"spread={spread}, expected sizes and dim of at least 1 and spread >= 0; "
            "choose larger ones"
        )
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(len(counts), dim))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    labels = rng.permutation(np.repeat(np.arange(len(counts), dtype=np.int64), counts))
    noise = rng.normal(size=(len(labels), dim)) * (spread / np.sqrt(dim))
    features = centres[labels] + noise  # (n_samples, dim)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), labels
