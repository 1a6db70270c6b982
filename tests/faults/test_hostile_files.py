"""Files that were made to do harm give an error, run nothing and take no memory."""

import io
import json
import os
import pickle
import resource
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hilander.cli.main import main

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"


class RunsCode:
    """Pickled, it makes a file when it is read."""

    def __init__(self, sign):
        self.sign = sign

    def __reduce__(self):
        return (os.system, (f"touch {self.sign}",))


@pytest.fixture
def sign(tmp_path):
    """A file that exists if something was executed."""
    path = tmp_path / "executed"
    yield path
    assert not path.exists()


def object_array(sign):
    stream = io.BytesIO()
    array = np.empty(1, dtype=object)
    array[0] = RunsCode(sign)
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def npy_header(text):
    padded = text + " " * (63 - len(text) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded.encode()


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 512)}"
CODE = "{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').getpid(), 2)}"
FILES = {
    "pickle.pkl": lambda sign: pickle.dumps((RunsCode(sign), [1])),
    "objects.npy": object_array,
    "objects.npz": lambda sign: zipped(**{"features.npy": object_array(sign)}),
    "code_in_header.npy": lambda sign: npy_header(CODE) + bytes(64),
    "huge.npy": lambda sign: npy_header(HUGE) + bytes(64),
    "huge.npz": lambda sign: zipped(**{"features.npy": npy_header(HUGE) + bytes(64)}),
    "weights.pth": lambda sign: pickle.dumps({"a": RunsCode(sign)}),
    "path.npz": lambda sign: zipped(**{"../../executed": b"x", "/executed": b"x"}),
    "formula.csv": lambda sign: f"f0,f1\n=cmd|'touch {sign}'!A0,1\n".encode(),
    "endless.parquet": lambda sign: b"PAR1" + bytes(100) + struct.pack("<I", 2**31) + b"PAR1",
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_input_is_one_line(tmp_path, sign, capsys, name):
    path = tmp_path / name
    path.write_bytes(FILES[name](sign))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    commands = [["info", str(path)], ["convert", str(path), str(tmp_path / "out.npy")]]
    if name.endswith(".pth"):
        commands[1][2] = str(tmp_path / "model")
    for command in commands:
        assert main(command) == 2
        assert capsys.readouterr().err.startswith("hilander: error: ")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    assert sorted(item.name for item in tmp_path.iterdir()) == [name]


@pytest.fixture
def run(tmp_path):
    shutil.copytree(FIXTURES / "run-default", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", b"[" * 10**6),
        ("run.json", b'{"input": {"n": ' + b"9" * 10**5 + b"}}"),
        ("hilander.json", b'{"hilander": "run", "format": 1, "files": ' + b'{"a":' * 10**5),
        ("hierarchy.npz", zipped(**{"n_levels.npy": npy_header(HUGE) + bytes(64)})),
    ],
)
def test_a_hostile_run_is_one_line(run, capsys, name, content):
    (run / name).write_bytes(content)
    assert main(["info", str(run)]) == 2
    assert capsys.readouterr().err.startswith("hilander: error: ")


def test_a_marker_cannot_name_files_outside_of_its_folder(run, tmp_path, capsys):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    marker = {"hilander": "run", "format": 1, "files": ["../secret", "/etc/passwd", ""]}
    (run / "hilander.json").write_text(json.dumps(marker))
    points = str(FIXTURES / "points.npy")
    model = str(FIXTURES / "model-default")
    assert main(["cluster", points, "-m", model, "-o", str(run), "--quiet"]) == 0
    assert secret.read_text() == "mine"


def test_weights_that_promise_too_much_are_refused(tmp_path, capsys):
    model = tmp_path / "model"
    shutil.copytree(FIXTURES / "model-default", model)
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    content = struct.pack("<Q", len(header)) + header.encode()
    for damaged in (content, struct.pack("<Q", 2**62) + b"{}"):
        (model / "weights.safetensors").write_bytes(damaged)
        assert main(["info", str(model)]) == 2
        assert "weights.safetensors is damaged" in capsys.readouterr().err


def test_a_pipe_as_input_does_not_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe.npy")
    done = subprocess.run(
        [sys.executable, "-m", "hilander", "info", str(tmp_path / "pipe.npy")],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pipe" in done.stderr
