"""The machine that measures: its facts, for the report, and what bounds a run here."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from harness import __version__, process
from harness.results import MachineRecord
from harness.worker import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERVER_BYTES = 2 * 2**30
"""Memory that a cell with its server and children is expected to need: 1 GB warm (2.15), and g++."""


def current_platform() -> str:
    """The platform of this machine as matrix.yaml spells it: `linux-x86_64`, `windows-amd64`, …"""
    system = {"Linux": "linux", "Darwin": "macos"}.get(platform.system(), platform.system().lower())
    return f"{system}-{platform.machine() if system == 'linux' else platform.machine().lower()}"


def cores() -> int:
    """Processors that this process may use."""
    if sys.platform.startswith("linux"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def live_cells(core_count: int) -> int:
    """How many cells may be alive at once: one more than cores, as long as memory allows."""
    by_memory = int(psutil.virtual_memory().available // _SERVER_BYTES)
    return max(1, min(core_count + 1, by_memory))


def can_fork() -> bool:
    """Whether the warm server may fork: Linux only; elsewhere system libraries do not survive it."""
    return sys.platform.startswith("linux")


def has_cuda_device() -> bool:
    """Whether an NVIDIA device is to be seen; asked of the system, because torch stands in no cell yet."""
    if sys.platform == "win32":
        return (Path(os.environ.get("SYSTEMROOT", "C:/Windows")) / "System32/nvcuda.dll").exists()
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def compiler_line(env: Mapping[str, str]) -> str:
    """What the C++ compiler that Inductor would take calls itself, "" where there is none.

    env: the variables that a cell sees. Inductor asks CXX, then g++ (torch._inductor.config.cpp.cxx).
    """
    default = {"win32": "cl", "darwin": "clang++"}.get(sys.platform, "g++")
    try:
        argv = (env.get("CXX") or default, "--version")
        found = process.run(argv, deadline_s=20, env=env, cwd=Path.cwd())
    except OSError:
        return ""
    lines = found.stdout_tail.strip().splitlines()
    return lines[0] if found.is_success and lines else ""


def describe(env: Mapping[str, str], at: str) -> MachineRecord:
    """The facts that a result may depend on. at: UTC, ISO 8601."""
    facts = {
        "system": _system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(cores()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "compiler": compiler_line(process.allowed_environment(env)) or "none",
        "harness python": platform.python_version(),
    }
    text = json.dumps([__version__, PROTOCOL, facts], sort_keys=True)
    identity = hashlib.sha256(text.encode()).hexdigest()[:12]
    return MachineRecord(id=identity, harness=__version__, protocol=PROTOCOL, facts=facts, at=at)


def _system() -> str:
    if sys.platform.startswith("linux"):
        try:
            release = platform.freedesktop_os_release()
        except OSError:
            return f"Linux {platform.release()}"
        return f"{release.get('PRETTY_NAME', 'Linux')}"
    return f"{platform.system()} {platform.release()}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    for line in text.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
