import numpy as np
import pytest
import torch

from hilander.linkage.paper.node_table import NodeTable, show_table
from hilander.linkage.paper.scorer import show_nodes

CPU = torch.device("cpu")


@pytest.fixture(params=["float32", "float16", "mapped", "frozen"])
def stored(request, tmp_path):
    """Features in every storage, and the float32 numbers that are meant."""
    values = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    if request.param in ("float16", "mapped"):
        values = values.astype(np.float16)
    meant = values.astype(np.float32)
    if request.param == "mapped":
        np.save(tmp_path / "values.npy", values)
        values = np.load(tmp_path / "values.npy", mmap_mode="r")
    if request.param == "frozen":
        values.flags.writeable = False
    return values, meant


def test_rows_and_mixtures_are_the_same_in_every_storage(stored):
    values, meant = stored
    rng = np.random.default_rng(1)
    other = rng.normal(size=(30, 3)).astype(np.float32)
    table = NodeTable([values, other, values], CPU)
    whole = np.concatenate([meant, other, meant], axis=1)
    assert (table.n_nodes, table.width) == whole.shape
    rows = table.rows(slice(4, 11))
    assert rows.dtype == torch.float32
    np.testing.assert_array_equal(rows.numpy(), whole[4:11])
    neighbours, weights = rng.integers(30, size=(7, 4)), rng.random((7, 4)).astype(np.float32)
    mixed = table.mix(torch.from_numpy(neighbours), torch.from_numpy(weights)).numpy()
    expected = np.einsum("nk,nkd->nd", weights, whole[neighbours])
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


@pytest.mark.parametrize("features", ["identity", "average", "concat"])
def test_a_table_shows_what_the_network_is_trained_on(small_level, features):
    _, nodes, _ = small_level
    table = show_table(nodes, features, CPU)
    np.testing.assert_array_equal(
        table.rows(slice(0, len(nodes))).numpy(), show_nodes(nodes, features)
    )
