"""The package that is built: one version, and a wheel that needs no compiler."""

import os
import re
import subprocess
import sys
import tomllib
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


def test_the_wheel_works_where_only_its_dependencies_are_installed(wheel, tmp_path):
    venv.create(tmp_path / "venv", system_site_packages=True, with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    # The dependencies of this environment, without its editable install of the package.
    (site / "dependencies.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("site-packages"))
    )
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True, env=ENVIRONMENT)
    done = subprocess.run(
        [str(python), "-c", "import hilander; print(hilander.__file__); "
         "from hilander.cli.main import main; raise SystemExit(main(['info', 'pretrained']))"],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    place, *facts = done.stdout.splitlines()
    assert Path(place).is_relative_to(site)
    assert any(line.startswith("method") for line in facts)


def test_the_lock_pins_every_dependency_with_a_digest():
    text = (ROOT / "requirements.lock").read_text()
    packages = re.findall(r"^([a-z0-9.-]+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}$", text, re.M)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 2 * len(packages)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[\[<>=~! ]", one)[0].lower() for one in project["dependencies"]}
    assert needed - set(packages) == {"torch"}
    assert "://" not in text
