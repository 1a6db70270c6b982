import io
import os
import pickle
import re
import struct
from typing import ClassVar

import numpy as np
import pytest

from hilander.errors import FileFormatError
from hilander.io.pickles import read_pickle_arrays


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 4)).astype(np.float32), rng.integers(0, 3, size=6)


def save(path, content, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


class _NumpyOne(pickle._Pickler):
    """Writes the module names of numpy 1."""

    def save_global(self, obj, name=None):
        module = getattr(obj, "__module__", "") or ""
        if not module.startswith("numpy._core"):
            return super().save_global(obj, name)
        old = module.replace("numpy._core", "numpy.core")
        self.write(b"c" + f"{old}\n{obj.__name__}\n".encode())
        return self.memoize(obj)

    # Functions of Python and of C are all that numpy names; classes keep their module.
    dispatch: ClassVar = pickle._Pickler.dispatch | {
        type(save): save_global,
        type(len): save_global,
    }


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "<i8", "|b1"])
def test_arrays_round_trip(tmp_path, pair, protocol, order, dtype):
    features = np.asarray(pair[0], dtype=dtype, order=order)
    got, labels = read_pickle_arrays(save(tmp_path / "a.pkl", (features, pair[1]), protocol))
    assert got.dtype == features.dtype
    np.testing.assert_array_equal(got, features)
    np.testing.assert_array_equal(labels, pair[1])


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_numpy_1_are_read(tmp_path, pair, protocol):
    stream = io.BytesIO()
    _NumpyOne(stream, protocol).dump(pair)
    assert b"numpy.core" in stream.getvalue()
    assert b"numpy._core" not in stream.getvalue()
    (tmp_path / "a.pkl").write_bytes(stream.getvalue())
    features, labels = read_pickle_arrays(tmp_path / "a.pkl")
    np.testing.assert_array_equal(features, pair[0])
    np.testing.assert_array_equal(labels, pair[1])


def test_a_pickle_of_python_2_is_read(tmp_path):
    # As Python 2 with numpy 1 writes it: byte strings where Python 3 has bytes.
    raw = np.array([[1, -2], [3, 4]], dtype="<f4").tobytes()
    program = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x02K\x02\x86cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R"
        b"(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x10" + raw + b"tb"
        b"]K\x07aK\x09a\x86."
    )
    (tmp_path / "a.pkl").write_bytes(program.replace(b"]K\x07aK\x09a", b"](K\x07K\x09e"))
    features, labels = read_pickle_arrays(tmp_path / "a.pkl")
    np.testing.assert_array_equal(features, [[1, -2], [3, 4]])
    np.testing.assert_array_equal(labels, [7, 9])


@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize(
    "labels", [[1, 2, 1], ["a", "b", "a"], (1, 2, 3), [np.int64(4), np.int64(5), np.int64(4)]]
)
def test_lists_of_labels_are_read(tmp_path, labels, protocol):
    features = np.ones((3, 2), dtype=np.float32)
    _, got = read_pickle_arrays(save(tmp_path / "a.pkl", [features, labels], protocol))
    np.testing.assert_array_equal(got, labels)


def test_text_labels_and_a_single_array_are_read(tmp_path, pair):
    names = np.array(["ann", "bo"] * 3)
    _, got = read_pickle_arrays(save(tmp_path / "a.pkl", (pair[0], names)))
    np.testing.assert_array_equal(got, names)
    features, labels = read_pickle_arrays(save(tmp_path / "b.pkl", pair[0]))
    np.testing.assert_array_equal(features, pair[0])
    assert labels is None


class _Call:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def _boxed(content):
    array = np.empty(1, dtype=object)
    array[0] = content
    return array


def _hostile(trap):
    command = f"touch {trap}"
    code = f"open({str(trap)!r}, 'w').close()"
    touch = b"cposix\nsystem\n(S'" + command.encode() + b"'\ntR."
    import builtins

    return {
        "os.system": pickle.dumps(_Call(os.system, command)),
        "posix by protocol 0": touch,
        "eval": pickle.dumps(_Call(eval, code)),
        "exec": pickle.dumps(_Call(exec, code)),
        "open": pickle.dumps(_Call(open, str(trap), "w")),
        "a chain of getattr": pickle.dumps(_Call(getattr, _Call(__import__, "os"), "system")),
        "inside the pair": pickle.dumps((np.ones((2, 2)), _Call(os.system, command))),
        "inside an object array": pickle.dumps((_boxed(_Call(os.system, command)), [1])),
        "object labels": pickle.dumps((np.ones((1, 2)), _boxed(_Call(eval, code)))),
        "a dotted name": b"\x80\x04\x8c\x05numpy\x94\x8c\x11ndarray.__class__\x94\x93.",
        "numpy's own loader": b"cnumpy\nload\n(S'x'\ntR.",
        "numpy's own runner": b"cnumpy.testing._private.utils\nrunstring\n(S'1'\n}tR.",
        "builtins by INST": b"(S'" + command.encode() + b"'\nios\nsystem\n.",
        "state of a function": b"c_codecs\nencode\n}S'x'\nI1\nsb.",
        "slots of a function": b"\x80\x02c_codecs\nencode\nN}U\x01xK\x01s\x86b.",
        "another codec": pickle.dumps(_Call(__import__("_codecs").encode, "x", "rot13")),
        "an extension": b"\x80\x02\x82\x01.",
        "a persistent id": b"P1\n.",
        "builtins.bytes of a size": pickle.dumps(_Call(builtins.bytes, 1 << 40)),
    }


@pytest.mark.parametrize("attack", list(_hostile("x")))
def test_a_malicious_pickle_is_not_executed(tmp_path, attack):
    trap = tmp_path / "trap"
    path = tmp_path / "a.pkl"
    path.write_bytes(_hostile(trap)[attack])
    with pytest.raises(FileFormatError, match=r"a.pkl") as caught:
        read_pickle_arrays(path)
    assert "\n" not in str(caught.value)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("os.system", "names posix.system, expected numpy arrays only"),
        ("a chain of getattr", "names builtins.getattr"),
        ("a dotted name", "names numpy.ndarray.__class__"),
        ("state of a function", "sets the state of a function"),
        ("slots of a function", "sets the state of a function"),
        ("another codec", "encodes text as 'rot13'"),
        ("an extension", "names extension 1"),
    ],
)
def test_the_error_names_what_the_pickle_contains(tmp_path, attack, message):
    (tmp_path / "a.pkl").write_bytes(_hostile(tmp_path / "trap")[attack])
    with pytest.raises(FileFormatError, match=re.escape(message)):
        read_pickle_arrays(tmp_path / "a.pkl")


def test_the_attacks_work_with_plain_pickle(tmp_path):
    trap = tmp_path / "trap"
    for attack in ("posix by protocol 0", "exec", "builtins by INST"):
        pickle.loads(_hostile(trap)[attack])
        assert trap.exists(), attack
        trap.unlink()


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"x.",  # bytes of an absurd length
        b"\x80\x05\x96" + struct.pack("<Q", 1 << 62) + b"x.",  # the same as a bytearray
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 40) + b"x.",  # a frame
        b"N" + b"r" + struct.pack("<I", 0xFFFFFFFF) + b".",  # a memo of 4 billion entries
    ],
)
def test_huge_sizes_take_no_memory(tmp_path, program):
    import tracemalloc

    (tmp_path / "a.pkl").write_bytes(program)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=r"a.pkl"):
            read_pickle_arrays(tmp_path / "a.pkl")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ((np.ones((2, 2)).astype(object), [1, 2]), "dtype 'O8'"),
        ((np.zeros(2, dtype=[("a", "f4")]), [1, 2]), "dtype 'V4'"),
        ((np.ones(3), [1, 2, 3]), r"has \(3,\) as features"),
        ((np.array([["a"]]), [1]), "as features"),
        (([[1.0, 2.0]], [1]), "has list as features"),
        ((1, 2, 3), "holds 3 objects"),
        ((np.ones((2, 2)), {"a": 1}), "has a dict as labels"),
        ((np.ones((2, 2)), [[1], [2]]), "neither numbers nor text"),
        ({"a": 1}, "has dict as features"),
    ],
)
def test_anything_but_features_and_labels_is_refused(tmp_path, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_pickle_arrays(save(tmp_path / "a.pkl", content))


def test_every_truncation_and_garbage_is_refused(tmp_path, pair):
    whole = pickle.dumps(pair, protocol=4)
    path = tmp_path / "a.pkl"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"a.pkl"):
            read_pickle_arrays(path)
    rng = np.random.default_rng(0)
    for _ in range(300):
        path.write_bytes(rng.bytes(200))
        with pytest.raises(FileFormatError, match=r"a.pkl"):
            read_pickle_arrays(path)


def test_a_missing_pickle_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_pickle_arrays(tmp_path / "no.pkl")
