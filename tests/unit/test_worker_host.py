"""What the worker asks of the system: who belongs to whom, what it holds, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.worker import host
from tests.unit.worlds import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
posix = pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[str]]:
    """A process in a session of its own, with a child in it; it says the child's number."""
    script = (
        "import subprocess, sys, time\n"
        "held = bytearray(b'x') * 50_000_000\n"
        "child = subprocess.Popen([sys.executable, '-ISc', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    argv = (sys.executable, "-ISc", script)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        yield child
        child.kill()


def wait_for_end(*pids: int) -> bool:
    until = time.monotonic() + 5
    while not all(has_ended(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    return all(has_ended(pid) for pid in pids)


@posix
@pytest.mark.process
def test_a_group_ends_as_a_whole_and_may_be_gone_already(leader: subprocess.Popen[str]) -> None:
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    host.kill_group(leader.pid)
    assert wait_for_end(leader.pid, child)
    assert leader.wait() == -signal.SIGKILL
    host.kill_group(leader.pid)


@linux
@pytest.mark.process
def test_a_session_is_measured_with_all_that_is_in_it(leader: subprocess.Popen[str]) -> None:
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    assert child in host.children_of(leader.pid)
    assert leader.pid in host.children_of(os.getpid())
    held = host.resident_bytes(leader.pid)
    assert 50_000_000 < held < 500_000_000
    shared_out = host.proportional_bytes(leader.pid)
    assert 50_000_000 < shared_out <= held
    host.kill_group(leader.pid)
    leader.wait()
    assert wait_for_end(child)
    assert host.children_of(leader.pid) == []
    assert host.resident_bytes(leader.pid) == 0


@linux
@pytest.mark.process
def test_a_child_dies_with_the_process_that_started_it() -> None:
    script = (
        "import os, sys, time\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from harness.worker import host\n"
        "parent = os.getpid()\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    host.die_with_parent(parent)\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(60)\n"
        "time.sleep(60)\n"
    )
    argv = (sys.executable, "-c", script)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert not has_ended(child)
        parent.kill()
    assert wait_for_end(child)


@linux
def test_threads_are_counted() -> None:
    before, stop = host.thread_count(), threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert host.thread_count() == before + 1
    stop.set()
    thread.join()


@posix
def test_a_descriptor_is_moved_out_of_the_way() -> None:
    reading, writing = os.pipe()
    moved = host.move_descriptor(writing, 150)
    assert moved >= 150
    os.write(moved, b"x")
    assert os.read(reading, 1) == b"x"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.write(writing, b"x")
    assert not os.get_inheritable(moved)
    os.close(moved)
    os.close(reading)


@pytest.mark.parametrize("ask", [host.thread_count, lambda: host.resident_bytes(os.getpid())])
def test_elsewhere_than_on_linux_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch, ask: object
) -> None:
    monkeypatch.setattr(host, "IS_LINUX", False)
    assert callable(ask)
    assert ask() == 0
    assert host.children_of(os.getpid()) == []
    host.adopt_orphans()
    host.die_with_parent(-1)
