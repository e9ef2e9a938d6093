"""What differs between operating systems when one process looks after others."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

IS_LINUX = sys.platform.startswith("linux")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Linux: what a probe leaves running becomes this process's child, and can be ended."""
    if IS_LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Linux: this process is killed when the one that started it, `parent`, is gone."""
    if IS_LINUX:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:  # gone before the system was told
            os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def thread_count() -> int:
    """Threads of this process; 0 where the system does not say."""
    return len(os.listdir("/proc/self/task")) if IS_LINUX else 0


def move_descriptor(descriptor: int, above: int) -> int:
    """The same file under a number from `above` on; as it is where the system has no such call."""
    try:
        import fcntl
    except ImportError:  # Windows
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(descriptor)
    return moved


def kill_group(leader: int) -> None:
    """Ends a process and all of its group, at once."""
    _END(leader)


def _kill_group_posix(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _kill_tree_windows(leader: int) -> None:
    import subprocess

    argv = ("taskkill", "/PID", str(leader), "/T", "/F")
    subprocess.run(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=30
    )


_END: Callable[[int], None] = _kill_tree_windows if os.name == "nt" else _kill_group_posix


def resident_bytes(session: int) -> int:
    """Linux: resident memory of all processes of a session, shared pages counted in each; else 0."""
    return sum(pages for _, _, owner, pages in _processes() if owner == session) * PAGE_BYTES


def proportional_bytes(session: int) -> int:
    """As `resident_bytes`, but each page is shared out among those that map it. It costs milliseconds.

    0 where the system does not say.
    """
    total = 0
    for pid, _, owner, _ in _processes():
        if owner == session:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as stream:
                found = re.search(rb"^Pss:\s+(\d+) kB", stream.read(), re.MULTILINE)
                total += int(found.group(1)) * 1024 if found else 0
    return total


def children_of(parent: int) -> list[int]:
    """Linux: the direct children of a process, dead ones that wait to be reaped included; else none."""
    return [pid for pid, above, _, _ in _processes() if above == parent]


def _processes() -> list[tuple[int, int, int, int]]:
    """pid, parent, session and resident pages of every process that can be read."""
    if not IS_LINUX:
        return []
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    fields = stream.read().rpartition(b")")[2].split()
            except OSError:  # it has ended since
                continue
            found.append((int(name), int(fields[1]), int(fields[3]), int(fields[21])))
    return found
