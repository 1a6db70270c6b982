"""Write requirements.lock: every package that CI and the documentation install, with its digests.

    python tools/lock.py          # asks pip what it would install, on this system

torch is left out: its builds for processors and GPUs have one version and different digests. Its
version is pinned in constraints.txt. The lock is of one system and one version of Python, which its
first lines name.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
EXTRAS = "dev"
WITHOUT_DIGEST = ("torch",)


def ask_pip() -> list[dict[str, Any]]:
    """What pip would install into an empty environment, as entries of its report."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--report", "-", "-c", str(ROOT / "constraints.txt")]
    done = subprocess.run(
        [*command, f"{ROOT}[{EXTRAS}]"], check=True, stdout=subprocess.PIPE, text=True
    )
    entries: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return entries


def format_lock(entries: list[dict[str, Any]]) -> str:
    """The lines of the lock: name, version and SHA-256 of each package, in the order of names."""
    lines = [
        f"# Written by tools/lock.py for Python {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}.",
        "# Install: pip install -c constraints.txt torch",
        "#          pip install --no-deps --require-hashes -r requirements.lock",
    ]
    packages = {}
    for entry in entries:
        name = entry["metadata"]["name"].lower().replace("_", "-")
        digest = entry["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is not None and name not in WITHOUT_DIGEST:  # the package itself has none
            packages[name] = (entry["metadata"]["version"], digest)
    for name, (version, digest) in sorted(packages.items()):
        lines += [f"{name}=={version} \\", f"    --hash=sha256:{digest}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    LOCK.write_text(format_lock(ask_pip()), encoding="utf-8")
