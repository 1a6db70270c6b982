import sys
import time
from pathlib import Path

from hilander.comparison.runner import Limits, run_limited


def run(code: str, folder: Path, limits: Limits):
    return run_limited([sys.executable, "-c", code], limits, folder / "log.txt")


def test_a_command_that_ends_well_has_no_reason(tmp_path: Path) -> None:
    ended = run("print('done')", tmp_path, Limits())
    assert ended.reason is None
    assert (tmp_path / "log.txt").read_text().strip() == "done"


def test_a_command_that_raises_gives_its_last_line(tmp_path: Path) -> None:
    ended = run("raise ValueError('no such thing')", tmp_path, Limits())
    assert ended.reason == "ValueError: no such thing"


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    ended = run("import time; time.sleep(60)", tmp_path, Limits(seconds=0.5))
    assert ended.reason is not None
    assert ended.reason.startswith("time limit")
    assert ended.seconds < 30


def test_what_a_command_started_is_ended_with_it(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    run(code, tmp_path, Limits(seconds=3.0))
    pid = (tmp_path / "pid").read_text()
    if Path("/proc").is_dir():
        assert is_gone(Path(f"/proc/{pid}/status"))


def is_gone(status: Path, seconds: float = 20.0) -> bool:
    """Whether a process ends soon: a kill waits for its turn on a busy machine."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if "zombie" in status.read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_a_command_that_takes_too_much_memory_is_ended(tmp_path: Path) -> None:
    code = "import time; held = bytearray(b'x') * 600_000_000; time.sleep(30)"
    ended = run(code, tmp_path, Limits(seconds=60, memory=200_000_000))
    assert ended.reason is not None
    assert ended.reason.startswith("memory limit")
    assert ended.peak_memory > 200_000_000


def test_a_command_that_is_killed_says_by_what(tmp_path: Path) -> None:
    ended = run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path, Limits())
    assert ended.reason == "ended by SIGKILL"


def test_threads_are_limited(tmp_path: Path) -> None:
    run("import os; print(os.environ['OMP_NUM_THREADS'])", tmp_path, Limits(threads=3))
    assert (tmp_path / "log.txt").read_text().strip() == "3"
