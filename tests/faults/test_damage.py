"""Damaged files of every kind: an error in one line, or the same result as before."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilander import HiLander
from hilander.cli.main import main
from hilander.errors import FileFormatError
from hilander.explorer.session.opening import open_explorer
from hilander.synthetic.identities import make_identities

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"
SHORT = settings(
    max_examples=25, derandomize=True, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@st.composite
def damages(draw):
    """A change of a file's bytes, as a function."""
    kind = draw(st.sampled_from(["flip", "flip", "cut", "zero", "insert", "empty"]))
    share = draw(st.floats(0, 1, exclude_max=True))
    bits = draw(st.integers(1, 255))

    def damage(content):
        place = int(share * len(content))
        if kind == "empty" or not content:
            return b""
        if kind == "cut":
            return content[:place]
        if kind == "insert":
            return content[:place] + bytes([bits]) * 7 + content[place:]
        changed = bytearray(content)
        if kind == "flip":
            changed[place] ^= bits
        else:
            changed[place : place + 64] = bytes(len(changed[place : place + 64]))
        return bytes(changed)

    return damage


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, a run with labels and its review, and one input of each format."""
    place = tmp_path_factory.mktemp("damage")
    X, y = make_identities(n_identities=12, size=8, dim=16, seed=0)
    HiLander.load(FIXTURES / "model-default").save(place / "model")
    np.savez(place / "points.npz", features=X, labels=y, id=np.arange(len(X)).astype(str))
    np.save(place / "labels.npy", y)
    for suffix in ("npy", "parquet"):
        assert main(["convert", f"{place}/points.npz", f"{place}/points.{suffix}"]) == 0
    np.savetxt(place / "points.csv", X, delimiter=",", header=header(X), comments="")
    command = ["cluster", f"{place}/points.npz", "-m", f"{place}/model", "-o", f"{place}/run"]
    assert main([*command, "--quiet"]) == 0
    explorer = open_explorer(place / "run")
    explorer.act("name", {"group": 0, "name": "mine"})
    explorer.store.close()
    return place


def header(X):
    return ",".join(f"f{column}" for column in range(X.shape[1]))


def run_main(command, capsys):
    """Exit code, output and errors of a command; the code is 0 or 2, and an error is one line."""
    code = main(command)
    out, err = capsys.readouterr()
    assert code in (0, 2), err
    assert "unexpected" not in err
    if code == 2:
        assert err.startswith("hilander: error: ")
    return code, out


def check(place, folder, commands, capsys, damage, pick):
    """Damage one file of a copy of a folder; each command ends in an error or as before."""
    names = sorted(item.name for item in (place / folder).iterdir())
    copy = place / "copy" / folder
    shutil.rmtree(place / "copy", ignore_errors=True)
    shutil.copytree(place / folder, copy)
    before = [run_main(command(copy), capsys) for command in commands]
    name = names[pick % len(names)]
    whole = (copy / name).read_bytes()
    damaged = damage(whole)
    (copy / name).write_bytes(damaged)
    for command, expected in zip(commands, before, strict=True):
        code, out = run_main(command(copy), capsys)
        assert code == 2 or (code, out) == expected, name


@SHORT
@given(damages(), st.integers(0, 9))
def test_a_damaged_model_is_refused_or_read_as_it_was(place, capsys, damage, pick):
    check(place, "model", [lambda folder: ["info", str(folder), "--json"]], capsys, damage, pick)


@SHORT
@given(damages(), st.integers(0, 20))
def test_a_damaged_run_is_refused_or_read_as_it_was(place, capsys, damage, pick):
    commands = [
        lambda folder: ["info", str(folder), "--json"],
        lambda folder: ["doubts", str(folder), "--json"],
        lambda folder: ["score", str(folder), "--labels", f"{place}/labels.npy", "--json"],
    ]
    check(place, "run", commands, capsys, damage, pick)


@SHORT
@given(damages(), st.integers(0, 20))
def test_without_the_digests_a_damaged_run_is_still_no_traceback(place, capsys, damage, pick):
    names = sorted(item.name for item in (place / "run").iterdir())
    shutil.rmtree(place / "copy", ignore_errors=True)
    shutil.copytree(place / "run", place / "copy" / "run")
    path = place / "copy" / "run" / names[pick % len(names)]
    path.write_bytes(damage(path.read_bytes()))
    run = str(path.parent)
    for command in (
        ["info", run], ["doubts", run], ["score", run, "--labels", f"{place}/labels.npy"],
        ["report", run, "-o", f"{place}/copy/report.md", "--quiet"],
    ):  # fmt: skip
        run_main([*command, "--no-verify"], capsys)


@SHORT
@given(damages(), st.sampled_from(["npz", "npy", "parquet", "csv"]))
def test_a_damaged_input_is_an_error_or_another_valid_input(place, capsys, damage, suffix):
    path = place / f"damaged.{suffix}"
    path.write_bytes(damage((place / f"points.{suffix}").read_bytes()))
    run_main(["info", str(path)], capsys)
    run_main(["convert", str(path), f"{place}/converted.npy"], capsys)


@SHORT
@given(damages())
def test_a_damaged_review_is_never_overwritten(place, damage):
    shutil.rmtree(place / "copy", ignore_errors=True)
    for folder in ("run", "run.explorer"):
        shutil.copytree(place / folder, place / "copy" / folder)
    path = place / "copy" / "run.explorer" / "review.sqlite"
    path.write_bytes(damage(path.read_bytes()))
    damaged = path.read_bytes()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            explorer = open_explorer(place / "copy" / "run")
        except FileFormatError:  # it says to move the file away
            return
    kept = [part.read_bytes() for part in path.parent.glob("review-damaged-*.sqlite")]
    is_aside = any("set aside" in str(one.message) for one in said)
    explorer.store.close()
    if is_aside:
        assert damaged in kept
    elif damaged:
        names = {event.payload.get("name") for event in explorer.review.log}
        assert names == {"mine"}
