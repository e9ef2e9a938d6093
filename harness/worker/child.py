"""The process around one probe, whether it was forked from the warm server or started afresh.

The result goes to a file of its own, whose descriptor is opened before the case runs: a case may print,
close stdout or leave through `os._exit`, and the result still arrives. Only this very process writes it:
what a case forks is no probe, however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import json
import os
import sys
import time
import traceback
from typing import Any, NoReturn

from harness.worker import host, observe, probe

STATUS_NO_ROOM = 98
"""Exit status of a child that could not write its result because the disk is full."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

STATUS_OUR_FAULT = 97
"""Exit status of a child in which the worker itself failed, whatever the case."""

_OUT_OF_THE_WAY = 200
"""Descriptors from here on are met by no case that goes through the low ones."""


def serve(request: dict[str, Any]) -> NoReturn:
    """Runs the probe, writes what it saw to `request["result"]`, and leaves the process.

    Standard output and error must already be where the tail is read from.
    """
    leave = os._exit
    try:
        result = _Result(request["result"])
        _prepare(request)
        _answer_os_exit(request, result)
        _leave(result, probe.examine(request), 0)
    except BaseException:
        traceback.print_exc()  # it stands in the output of the probe
        sys.stderr.flush()
    finally:
        leave(STATUS_OUR_FAULT)


def main() -> NoReturn:
    """A fresh process: reads its request from the file that its first argument names."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        request = json.load(stream)
    host.die_with_parent(request["parent"])
    sys.argv = [request["file"]]
    observe.install()
    serve(request)


def _prepare(request: dict[str, Any]) -> None:
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    # What a crash or a hang was doing goes to stderr, whatever a case does to sys.stderr.
    # faulthandler writes to a descriptor of its own, so a case that closes 2 does not silence it.
    log = os.dup(2)
    faulthandler.enable(log, all_threads=True)
    faulthandler.dump_traceback_later(_until_dump(request), file=log)
    _no_core_dump()
    observe.RECORD.clear()


def _until_dump(request: dict[str, Any]) -> float:
    """Seconds from now until a hang is to be located: shortly before the server ends this process."""
    deadline = request["deadline_s"]
    margin = max(deadline * 0.05, min(1.0, deadline / 2))
    return max(0.01, float(request["started"] + deadline - margin - time.monotonic()))


def _no_core_dump() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Result:
    """Where this process, and no child of it, writes what it saw."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._owner = os.getpid()
        self._descriptor = host.move_descriptor(self._open(), _OUT_OF_THE_WAY)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @property
    def is_ours(self) -> bool:
        return os.getpid() == self._owner

    def write(self, seen: probe.Seen) -> bool:
        """False: the disk is full. A line of its own, whatever a case wrote to the descriptor."""
        data = b"\n" + json.dumps(seen, ensure_ascii=True).encode() + b"\n"
        try:
            self._write(data)
        except OSError as error:
            if error.errno in NO_ROOM:
                return False
            if error.errno != errno.EBADF:
                raise
            self._descriptor = self._open()  # the case closed all descriptors
            self._write(data)
        return True

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _answer_os_exit(request: dict[str, Any], result: _Result) -> None:
    """Has `os._exit` write what is known before it leaves."""
    started, leave = time.perf_counter(), os._exit

    def leaving(status: int) -> NoReturn:
        if not result.is_ours:  # a child of the case: multiprocessing leaves in this way
            leave(status)
        seen: probe.Seen
        if request["kind"] == "script":
            seen = probe.left_with(status)
        else:
            seen = {
                "verdict": "crash",
                "message": f"the case ended its own process: os._exit({status})",
            }
        done = probe.finish(seen, request, time.perf_counter() - started)
        result.write({**done, "exit_status": status})
        leave(status)

    os._exit = leaving
    _LEAVE.append(leave)


_LEAVE: list[Any] = []


def _leave(result: _Result, seen: probe.Seen, status: int) -> NoReturn:
    written = result.write(seen) if result.is_ours else True
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the case closed it, or the disk is full
            stream.flush()
    # Straight out: threads, atexit hooks and destructors of a torn torch are no part of the probe.
    _LEAVE[0](status if written else STATUS_NO_ROOM)
    msg = "unreachable"
    raise AssertionError(msg)
