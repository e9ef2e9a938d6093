"""The machine's facts are enough to compare results by, and name neither it nor its user."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness import __version__, machine
from harness.worker import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.results import MachineRecord

NOW = "2026-12-01T12:00:00Z"


def memory(available: int) -> Callable[[], Any]:
    return lambda: SimpleNamespace(available=available, total=16 * 2**30)


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> MachineRecord:
    monkeypatch.setattr(machine, "compiler_line", lambda _env: "g++ (Debian 12.2.0-14) 12.2.0")
    return machine.describe({"HOME": "/home/someone"}, NOW)


def test_the_facts_are_all_there(described: MachineRecord) -> None:
    assert set(described.facts) == {
        "system", "machine", "processor", "cores", "memory", "compiler", "harness python",
    }  # fmt: skip
    assert all(described.facts[name] for name in ("system", "machine", "cores"))
    assert described.facts["harness python"] == platform.python_version()
    assert re.fullmatch(r"\d+ GiB", described.facts["memory"])
    assert (described.harness, described.protocol, described.at) == (__version__, PROTOCOL, NOW)


def test_nobody_is_named(described: MachineRecord) -> None:
    text = json.dumps(described.facts).lower()
    names = {socket.gethostname(), platform.node(), getpass.getuser(), Path.home().name, "someone"}
    assert [name for name in names if re.search(rf"\b{re.escape(name.lower())}\b", text)] == []


def test_the_id_is_of_the_facts_and_not_of_the_time(
    described: MachineRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", described.id)
    assert machine.describe({}, "another time").id == described.id
    monkeypatch.setattr(machine, "compiler_line", lambda _env: "")
    other = machine.describe({}, NOW)
    assert other.id != described.id
    assert other.facts["compiler"] == "none"


@pytest.mark.parametrize(
    ("system", "processor", "named"),
    [
        ("Linux", "x86_64", "linux-x86_64"),
        ("Linux", "aarch64", "linux-aarch64"),
        ("Darwin", "arm64", "macos-arm64"),
        ("Windows", "AMD64", "windows-amd64"),
    ],
)
def test_the_platform_is_spelled_as_matrix_yaml_spells_it(
    monkeypatch: pytest.MonkeyPatch, system: str, processor: str, named: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    assert machine.current_platform() == named


@pytest.mark.parametrize(
    ("cores", "gibibytes", "cells"),
    [(2, 64, 3), (16, 64, 17), (16, 9, 4), (8, 4, 2), (2, 1, 1), (1, 0, 1)],
)
def test_as_many_cells_are_alive_as_cores_and_memory_allow(
    monkeypatch: pytest.MonkeyPatch, cores: int, gibibytes: int, cells: int
) -> None:
    monkeypatch.setattr("psutil.virtual_memory", memory(gibibytes * 2**30))
    assert machine.live_cells(cores) == cells


def test_cores_are_those_that_this_process_may_use() -> None:
    assert 1 <= machine.cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="affinity is Linux's")
def test_a_process_that_was_pinned_has_fewer_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3})
    assert machine.cores() == 1


def test_only_linux_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    for system, can_fork in (("linux", True), ("darwin", False), ("win32", False)):
        monkeypatch.setattr(sys, "platform", system)
        assert machine.can_fork() is can_fork


def test_a_cuda_device_on_windows_is_known_by_its_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path))
    assert not machine.has_cuda_device()
    (tmp_path / "System32").mkdir()
    (tmp_path / "System32" / "nvcuda.dll").touch()
    assert machine.has_cuda_device()


posix = pytest.mark.skipif(sys.platform == "win32", reason="scripts with a #! line")


def compiler(folder: Path, name: str, *lines: str) -> None:
    file = folder / name
    file.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n", encoding="utf-8")
    file.chmod(0o755)


@posix
@pytest.mark.process
def test_the_compiler_is_asked_as_inductor_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    compiler(tmp_path, "g++", "echo 'g++ (fake) 12.2.0'", "echo 'a licence'")
    compiler(tmp_path, "mine", 'echo "mine $1"')
    compiler(tmp_path, "broken", "echo 'broken 1.0'", "exit 1")
    compiler(tmp_path, "silent", "exit 0")
    env = {"PATH": str(tmp_path)}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.compiler_line(env) == "g++ (fake) 12.2.0"
    assert machine.compiler_line({**env, "CXX": str(tmp_path / "mine")}) == "mine --version"
    for name in ("broken", "silent", "absent"):
        assert machine.compiler_line({**env, "CXX": str(tmp_path / name)}) == ""
