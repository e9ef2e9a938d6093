"""The one long-lived process of a cell: takes probes, runs each in a child, and answers with what it saw.

Warm (`fork`): torch, Dynamo and Inductor are imported once and a child is forked for every probe. Fresh
(`process`): a new interpreter for every probe, where a fork is unsafe (a CUDA context, macOS, Windows) or
where a warm process would hide what is asked (a missing compiler, a cold cache).

Requests and answers are lines of JSON on the two descriptors that were standard input and output when
the process started; no case ever sees them. The process has one thread when it forks.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from harness.worker import PROTOCOL, child, host, observe, texts, warm

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTPUT_TAIL_BYTES = 12_000
OUTPUT_LIMIT_BYTES = 64 * 1024 * 1024
_TICK_S = 0.2
_GENERATIONS = 100

BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); import {module} as m; del sys.path[0]; m.main()"
"""What `python -c` runs: the harness is importable for this one import, and hidden from cases after it."""


@dataclass
class Running:
    """A probe in flight. pid leads a session of its own; process is set where it was not forked.

    result: descriptor of the file that the result is written to; a case may delete the file itself.
    output: the tail of what it had written when its file was emptied last.
    """

    request: dict[str, Any]
    pid: int
    started: float
    isolation: str
    base_bytes: int
    result: int
    process: subprocess.Popen[bytes] | None = None
    ended_for: str = ""
    peak_bytes: int = 0
    output: bytes = b""
    next_look: float = 0.0


class Server:
    """Serves until standard input ends, which it does when the harness is gone."""

    def __init__(self, requests: int, answers: int, *, fork: bool) -> None:
        self._answers = answers
        self._fork = fork and hasattr(os, "fork")
        self._running: dict[int, Running] = {}
        self._clean_environment = dict(os.environ)
        self._lines = _Lines(requests)
        host.adopt_orphans()

    def serve(self) -> None:
        started = time.perf_counter()
        self._warmth = warm.Warmth()
        if self._fork:
            self._warmth.import_torch()
        self._answer(
            {
                "ready": True,
                "protocol": PROTOCOL,
                "fork": self._fork and not self._warmth.failure,
                "failure": self._warmth.failure,
                "threads": host.thread_count(),
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        try:
            while not self._lines.is_ended:
                timeout = self._next_look() if self._running else None
                for line in self._lines.wait(timeout):
                    self._take(json.loads(line))
                self._look()
        except BrokenPipeError:  # the harness is gone: nobody waits for an answer
            return
        finally:
            self._end_all()

    def _answer(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, ensure_ascii=True).encode() + b"\n"
        while data:
            data = data[os.write(self._answers, data) :]

    def _take(self, request: dict[str, Any]) -> None:
        try:
            self._start(request)
        except OSError as error:
            if error.errno not in child.NO_ROOM:
                raise
            shutil.rmtree(request["folder"], ignore_errors=True)
            self._answer({"id": request["id"], "seen": _no_room("the probe could not be started")})

    def _start(self, request: dict[str, Any]) -> None:
        fork = self._fork and request["isolation"] == "fork" and not self._warmth.failure
        if fork and request["path"].startswith("inductor"):
            self._warmth.warm_inductor()
        if fork and host.thread_count() > 1:
            fork = False  # a thread that holds a lock would hang the child
        folder = request["folder"]
        os.makedirs(os.path.join(folder, "run"), exist_ok=True)
        now = time.monotonic()
        request = {
            **request,
            "started": now,
            "result": os.path.join(folder, "result.json"),
            "output": os.path.join(folder, "output.txt"),
            "folder": os.path.join(folder, "run"),
            "root": folder,
            "parent": os.getpid(),
            "environment": {
                "TORCHINDUCTOR_CACHE_DIR": os.path.join(folder, "inductor"),
                "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
                "COMPILE_MATRIX_DEVICE": request["device"],
            },
        }
        # All files are made here, where a full disk can be told.
        os.close(os.open(request["output"], os.O_WRONLY | os.O_CREAT, 0o600))
        result = os.open(request["result"], os.O_RDONLY | os.O_CREAT, 0o600)
        if fork:
            base = host.resident_bytes(os.getsid(0)) if host.IS_LINUX else 0
            pid = self._fork_child(request, result)
            self._running[pid] = Running(request, pid, now, "fork", base, result)
        else:
            process = self._start_process(request)
            running = Running(request, process.pid, now, "process", 0, result, process)
            self._running[process.pid] = running

    def _fork_child(self, request: dict[str, Any], result: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            host.die_with_parent(request["parent"])
            self._lines.forget_parent()
            _redirect(request["output"])
            for ours in (self._answers, result, *(r.result for r in self._running.values())):
                os.close(ours)
            self._warmth.settle_child()
            child.serve(request)
        finally:
            os._exit(child.STATUS_OUR_FAULT)

    def _start_process(self, request: dict[str, Any]) -> subprocess.Popen[bytes]:
        asked = os.path.join(request["root"], "request.json")
        with open(asked, "w", encoding="utf-8") as stream:
            json.dump(request, stream)
        above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        boot = BOOT.format(module="harness.worker.child")
        argv = (sys.executable, "-c", boot, above, asked)
        flags: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            flags = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        with open(request["output"], "ab") as output:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._clean_environment,
                **flags,
            )

    def _next_look(self) -> float:
        now = time.monotonic()
        due: float = min(r.started + r.request["deadline_s"] for r in self._running.values())
        return max(0.0, min(_TICK_S, due - now))

    def _look(self) -> None:
        """Ends what is over its bounds, and answers for what has ended."""
        now = time.monotonic()
        for running in list(self._running.values()):
            status = self._reap(running)
            if status is not None:
                del self._running[running.pid]
                self._finish(running, status, now - running.started)
            elif now >= running.started + running.request["deadline_s"]:
                self._end(running, "timeout")
            elif now >= running.next_look:
                running.next_look = now + _TICK_S
                self._check_bounds(running)

    def _check_bounds(self, running: Running) -> None:
        used = max(0, host.resident_bytes(running.pid) - running.base_bytes)
        running.peak_bytes = max(running.peak_bytes, used)
        bound = running.request["memory_bytes"]
        if bound and used > bound and self._is_beyond(running, bound):
            self._end(running, "out-of-memory")
        with contextlib.suppress(OSError):
            if os.path.getsize(running.request["output"]) > OUTPUT_LIMIT_BYTES:
                running.output = _tail(running)  # what comes later is appended to an empty file
                os.truncate(running.request["output"], 0)

    def _is_beyond(self, running: Running, bound: int) -> bool:
        """A page that the server and all children of a probe share was counted in each of them."""
        shared_out = host.proportional_bytes(running.pid)
        return not shared_out or shared_out - running.base_bytes > bound

    def _end(self, running: Running, why: str) -> None:
        running.ended_for = running.ended_for or why
        host.kill_group(running.pid)

    def _reap(self, running: Running) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        if running.process is not None:
            return running.process.poll()
        pid, status = os.waitpid(running.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def _finish(self, running: Running, status: int, seconds: float) -> None:
        if os.name != "nt":
            host.kill_group(running.pid)  # the leader is gone; its group may not be
        self._end_orphans()
        request = running.request
        seen = _read_result(running.result)
        if seen is None or running.ended_for:
            seen = {**_ended(running, status), **_counted(seen)}
            seen["seconds"] = round(seconds, 4)
        seen["peak_bytes"] = max(seen.get("peak_bytes", 0), running.peak_bytes)
        text = _tail(running).decode("utf-8", "replace")
        seen["output"] = texts.clean(text, texts.cleaner(request))
        seen["isolation"] = running.isolation
        shutil.rmtree(request["root"], ignore_errors=True)
        self._answer({"id": request["id"], "seen": seen})

    def _end_orphans(self) -> None:
        """What a probe left running outside its group has become our child; it is nobody's probe."""
        for _ in range(_GENERATIONS):  # the children of an orphan become ours in turn
            orphans = [p for p in host.children_of(os.getpid()) if p not in self._running]
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _end_all(self) -> None:
        for running in self._running.values():
            host.kill_group(running.pid)
        self._running.clear()
        self._end_orphans()


def _read_result(descriptor: int) -> dict[str, Any] | None:
    """The last whole line that is a result; a case may have written to the file, too. Closes it."""
    with open(descriptor, "rb") as stream:
        lines = stream.read().split(b"\n")[:-1]
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            found: Any = json.loads(line)
            if isinstance(found, dict) and found.get("verdict") and "peak_bytes" in found:
                return found
    return None


def _counted(seen: dict[str, Any] | None) -> dict[str, Any]:
    nothing: dict[str, Any] = {"graphs": 0, "ops": 0, "recompiles": 0, "breaks": []}
    return {key: (seen or nothing).get(key, value) for key, value in nothing.items()}


def _ended(running: Running, status: int) -> dict[str, Any]:
    """The verdict on a process that left no result."""
    if running.ended_for == "timeout":
        deadline = running.request["deadline_s"]
        return {"verdict": "timeout", "message": f"ended after its deadline of {deadline:g} s"}
    if running.ended_for == "out-of-memory":
        bound = running.request["memory_bytes"] / 2**30
        return {"verdict": "out-of-memory", "message": f"ended beyond its bound of {bound:.3g} GiB"}
    if status == child.STATUS_NO_ROOM:
        return _no_room("the result of the probe could not be written")
    if status == child.STATUS_OUR_FAULT:
        text = "our own fault: the worker failed; its traceback stands in the output"
        return {"verdict": "not-run", "not_run": "worker failed", "message": text}
    if status < 0:
        name = _signal_name(-status)
        return {"verdict": "crash", "message": f"the process was ended by {name}", "signal": name}
    text = f"the process left with status {status} before the probe was done"
    return {"verdict": "crash", "message": text, "exit_status": status}


def _no_room(what: str) -> dict[str, Any]:
    text = f"the disk is full: {what}"
    return {"verdict": "not-run", "not_run": "disk full", "message": text}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(running: Running) -> bytes:
    """The last of what the probe wrote, of which the first may have been thrown away already."""
    data, is_whole = running.output, not running.output
    with contextlib.suppress(OSError), open(running.request["output"], "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - OUTPUT_TAIL_BYTES))
        data += stream.read()
        is_whole = is_whole and size <= OUTPUT_TAIL_BYTES
    return data if is_whole else b"[cut]\n" + data[-OUTPUT_TAIL_BYTES:]


def _redirect(output: str) -> None:
    """Standard input from nowhere, standard output and error to the probe's own file."""
    nowhere, file = (
        os.open(os.devnull, os.O_RDONLY),
        os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    )
    os.dup2(nowhere, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)


class _Lines:
    """Lines from a descriptor, waited for together with the end of a child.

    POSIX: one thread, `select` on the descriptor and on the wake-up pipe that SIGCHLD writes to.
    Windows cannot select on a pipe: a reader thread there, where nothing is ever forked.
    """

    def __init__(self, descriptor: int) -> None:
        self.is_ended = False
        self._descriptor = descriptor
        self._buffer = b""
        self._queue: queue.Queue[bytes] = queue.Queue()
        if os.name == "nt":
            threading.Thread(target=self._read_on, daemon=True).start()
            return
        os.set_blocking(descriptor, False)
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def wait(self, timeout: float | None) -> Iterator[bytes]:
        """The whole lines that have come by the time something happened or `timeout` seconds passed."""
        if os.name == "nt":
            with contextlib.suppress(queue.Empty):
                self._buffer += self._queue.get(timeout=timeout if timeout is not None else 3600)
        else:
            ready, _, _ = select.select([self._descriptor, self._woken], [], [], timeout)
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)
            if self._descriptor in ready:
                self._take(os.read(self._descriptor, 1 << 16))
        *lines, self._buffer = self._buffer.split(b"\n")
        return iter(lines)

    def _take(self, data: bytes) -> None:
        self._buffer += data
        self.is_ended = self.is_ended or not data

    def _read_on(self) -> None:
        while True:
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                self.is_ended = True
                self._queue.put(b"")
                return
            self._queue.put(data)

    def forget_parent(self) -> None:
        """In a forked child: the server's descriptors and signal handling are not the case's business."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._descriptor, self._woken, self._waker):
            os.close(descriptor)


def main() -> NoReturn:
    """Serves on what were standard input and output. argv[1]: `fork` or `process`."""
    mode = sys.argv[1]
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)  # whatever torch prints on import goes to the log, not among the answers
    tempfile.tempdir = None
    observe.install()
    Server(requests, answers, fork=mode == "fork").serve()
    os._exit(0)  # torch's own farewell at exit helps nobody here
