"""The front door does not lie: one cell is one cell, a failure stays one, an interrupt reaches the harness."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.process, pytest.mark.slow]

FAKE_MAIN = """
import os, pathlib, signal, sys, time
place = pathlib.Path(os.environ["FAKE_HARNESS_LOG"])
def say(what):
    with place.open("a") as log:
        print(what, file=log)
def stop(number, frame):
    say(f"got {signal.Signals(number).name}")
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
say(" ".join(sys.argv[1:]))
if "exit" in sys.argv:
    sys.exit(int(sys.argv[-1]))
if "sleep" in sys.argv:
    time.sleep(60)
    say("slept to the end")
"""

FAKE_MATRIX = """
from types import SimpleNamespace
from harness.errors import HarnessError
def load_matrix(path):
    text = path.read_text()
    if "3.1:" in text:
        raise HarnessError("Python version 3.1 is a number", where="matrix.yaml:1:1")
    cells = tuple(SimpleNamespace(id=word) for word in text.split())
    return SimpleNamespace(
        cells=lambda patterns, *, platform, found_pythons: cells,
        why_impossible=lambda cell: cell.id.startswith("impossible") or None,
    )
"""


class Door:
    """A folder with the real noxfile.py and a harness that only says what it was asked."""

    def __init__(self, folder: Path, *, has_harness: bool = True) -> None:
        self.folder = folder
        self.log = folder / "log"
        shutil.copy(ROOT / "noxfile.py", folder)
        (folder / "matrix.yaml").write_text("3.12-2.1 3.12-2.10 impossible-2.0", encoding="utf-8")
        package = folder / "path" / "harness"
        package.mkdir(parents=True)
        if has_harness:
            shutil.copy(ROOT / "harness" / "errors.py", package)
            for name, text in {
                "__init__.py": "",
                "__main__.py": FAKE_MAIN,
                "machine.py": "def current_platform(): return 'linux-x86_64'",
                "matrix.py": FAKE_MATRIX,
            }.items():
                (package / name).write_text(text, encoding="utf-8")
        else:
            (package / "__init__.py").write_text("raise ImportError('not here')", encoding="utf-8")
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith("COV")},
            "PYTHONPATH": str(folder / "path"),
            "FAKE_HARNESS_LOG": str(self.log),
        }

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "nox", *args],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def open(self, *args: str) -> tuple[int, str]:
        """Exit status of nox, and all that it printed."""
        with self.start(*args) as nox:
            told, _ = nox.communicate(timeout=60)
        return nox.returncode, told

    def asked(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


def test_one_cell_runs_alone_though_two_ids_are_equal_as_numbers(door: Door) -> None:
    status, told = door.open("-s", "cell(3.12-2.1)", "--", "--cases", "gate/*")
    assert status == 0, told
    assert door.asked() == ["run --cells 3.12-2.1 --cases gate/*"]


def test_only_cells_that_a_wheel_serves_are_sessions(door: Door) -> None:
    _, told = door.open("-l")
    assert [line.split()[1] for line in told.splitlines() if " cell(" in line] == [
        "cell(3.12-2.1)",
        "cell(3.12-2.10)",
    ]


@pytest.mark.parametrize("status", [2, 3, 130])
def test_no_failure_becomes_success(door: Door, status: int) -> None:
    assert door.open("-s", "matrix", "--", "exit", str(status))[0] == 1
    assert door.asked() == [f"run exit {status}"]


def test_a_mistake_in_matrix_yaml_is_told_and_fails(door: Door) -> None:
    (door.folder / "matrix.yaml").write_text("3.1:", encoding="utf-8")
    for session in ("matrix", "cell", "report"):
        status, told = door.open("-s", session)
        assert status == 1
        assert "matrix.yaml:1:1: Python version 3.1 is a number" in told
    assert door.open("-l")[0] == 0


def test_a_nox_without_the_harness_says_what_to_do(tmp_path: Path) -> None:
    status, told = Door(tmp_path, has_harness=False).open("-s", "matrix")
    assert status == 1
    assert "nox's Python cannot import the harness (not here)" in told
    assert f"run `{sys.executable} -m pip install -e .` first" in told


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send")
def test_ending_nox_ends_the_harness_and_waits_for_it(door: Door) -> None:
    with door.start("-s", "matrix", "--", "sleep") as nox:
        deadline = time.monotonic() + 30
        while not door.asked() and time.monotonic() < deadline:
            time.sleep(0.05)
        nox.send_signal(signal.SIGTERM)
        told, _ = nox.communicate(timeout=60)
    assert nox.returncode == 130, told
    assert door.asked() == ["run sleep", "got SIGTERM"]
