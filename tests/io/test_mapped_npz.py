"""Arrays of an `.npz` that are mapped into memory."""

import numpy as np
import pytest

from hilander.errors import FileFormatError
from hilander.io.mapped_npz import map_npz


def test_an_uncompressed_npz_is_mapped_and_a_compressed_one_read(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(7, 3)).astype(np.float32),
        "b/c": np.arange(5),
        "none": np.empty((0, 4)),
        "one": np.array(3),
        "f": np.asfortranarray(rng.normal(size=(4, 6))),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = map_npz(tmp_path / "x.npz")
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
        assert isinstance(found["a"], np.memmap) == (save is np.savez)


def test_python_objects_in_an_npz_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(FileFormatError, match="damaged"):
        map_npz(tmp_path / "x.npz")
