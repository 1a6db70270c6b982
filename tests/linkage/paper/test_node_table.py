import numpy as np
import pytest
import torch

from hilander.linkage.paper.node_table import NodeTable, make_input_table
from hilander.linkage.paper.scorer import make_inputs

CPU = torch.device("cpu")


@pytest.fixture(params=["float32", "float16", "mapped", "frozen"])
def stored(request, tmp_path):
    """Features in each storage, and their float32 values."""
    values = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    if request.param in ("float16", "mapped"):
        values = values.astype(np.float16)
    expected_rows = values.astype(np.float32)
    if request.param == "mapped":
        np.save(tmp_path / "values.npy", values)
        values = np.load(tmp_path / "values.npy", mmap_mode="r")
    if request.param == "frozen":
        values.flags.writeable = False
    return values, expected_rows


def test_rows_and_mixtures_are_the_same_in_every_storage(stored):
    values, expected_rows = stored
    rng = np.random.default_rng(1)
    other = rng.normal(size=(30, 3)).astype(np.float32)
    table = NodeTable([values, other, values], CPU)
    whole = np.concatenate([expected_rows, other, expected_rows], axis=1)
    assert (table.n_nodes, table.width) == whole.shape
    rows = table.rows(slice(4, 11))
    assert rows.dtype == torch.float32
    np.testing.assert_array_equal(rows.numpy(), whole[4:11])
    neighbours, weights = rng.integers(30, size=(7, 4)), rng.random((7, 4)).astype(np.float32)
    mixed = table.mix(torch.from_numpy(neighbours), torch.from_numpy(weights)).numpy()
    expected = np.einsum("nk,nkd->nd", weights, whole[neighbours])
    np.testing.assert_allclose(mixed, expected, atol=1e-5)


@pytest.mark.parametrize("features", ["identity", "average", "concat"])
def test_a_table_has_the_inputs_of_training(small_level, features):
    _, nodes, _ = small_level
    table = make_input_table(nodes, features, CPU)
    np.testing.assert_array_equal(
        table.rows(slice(0, len(nodes))).numpy(), make_inputs(nodes, features)
    )
