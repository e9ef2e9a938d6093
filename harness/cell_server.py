"""The harness's end of a cell's server: starts it, hands it probes, and notices when it dies."""

from __future__ import annotations

import itertools
import json
import queue
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import process
from harness.worker import texts
from harness.worker.server import BOOT

if TYPE_CHECKING:
    from collections.abc import Mapping

_READY_DEADLINE_S = 300.0
_GRACE_S = 60.0
_CLOSE_S = 5.0
_LOG_TAIL_BYTES = 12_000

_ABOVE = Path(__file__).resolve().parent.parent

_SETTINGS = {
    # One thread: a process with more cannot fork safely, and results do not depend on the cores.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # Sets and dictionaries of strings keep one order from run to run.
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONIOENCODING": "utf-8",
}


class ServerDied(Exception):
    """The server ended, or stopped answering, while a probe was in it.

    signal: name of what ended it, "" when it left by itself. log: the tail of what it wrote.
    """

    def __init__(self, ended_by: str, log: str) -> None:
        super().__init__(ended_by or "the server ended")
        self.signal = ended_by
        self.log = log


class ServerFailed(ServerDied):
    """The server never came up: no probe is to blame."""


def cell_environment(env: Mapping[str, str], python: Path, device: str) -> dict[str, str]:
    """The environment variables of everything that runs in a cell, TMPDIR excepted.

    As in an activated environment, its programs come first; on a CPU cell no GPU is to be seen.
    """
    overrides = dict(_SETTINGS)
    separator = ";" if sys.platform == "win32" else ":"
    overrides["PATH"] = separator.join((str(python.parent), env.get("PATH", "")))
    if device == "cpu":
        overrides["CUDA_VISIBLE_DEVICES"] = ""
    return process.allowed_environment(env, overrides=overrides)


class CellServer:
    """One server process. Its methods may be called from several threads.

    python: the cell's. env: from `cell_environment`. scratch: a folder of its own, for temporary files
    and the log. fork: warm with forked children, or a fresh process for each probe.
    The constructor does not wait for it to come up: it can be closed while it does.
    Raises from the constructor: ServerFailed when the interpreter cannot be started.
    """

    def __init__(self, python: Path, env: Mapping[str, str], scratch: Path, *, fork: bool) -> None:
        self._scratch = scratch
        self._home = python.parent.parent
        self._user = env.get("HOME") or env.get("USERPROFILE") or ""
        self._log = scratch / "server.log"
        temporary = scratch / "tmp"
        mode = "fork" if fork else "process"
        boot = BOOT.format(module="harness.worker.server")
        folders = {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")}
        try:
            temporary.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as log:
                self._child = process.start(
                    (str(python), "-X", "faulthandler", "-c", boot, str(_ABOVE), mode),
                    env={**env, **folders},
                    cwd=temporary,
                    stdin=process.PIPE,
                    stdout=process.PIPE,
                    stderr=log.fileno(),
                )
        except OSError as error:
            raise ServerFailed(str(error), "") from error
        self._ids = itertools.count(1)
        self._waiting: dict[int, queue.Queue[dict[str, Any] | None]] = {}
        self._lock = threading.Lock()
        self._came_up = threading.Event()
        self._ready: dict[str, Any] = {}
        self.is_dead = False
        self._reader = threading.Thread(target=self._read, name="answers", daemon=True)
        self._reader.start()

    @property
    def ready(self) -> dict[str, Any]:
        """What the server says of itself once it is up; waits for that. Raises: ServerFailed."""
        self._wait_until_up()
        return self._ready

    def _wait_until_up(self) -> None:
        if not self._came_up.wait(_READY_DEADLINE_S):
            self.close()
            log = f"{self.log_tail()}\nthe server did not answer in {_READY_DEADLINE_S:g} s"
            raise ServerFailed(_signal_name(self._child.returncode), log.strip())
        if not self._ready:
            death = self._died()
            raise ServerFailed(death.signal, death.log)

    def probe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Runs one probe and returns what was seen, fields of results.Observation.

        request: `case`, `file`, `kind`, `path`, `device`, `deadline_s`, `memory_bytes`, `isolation`.
        Raises: ServerDied; ServerFailed when the server does not come up.
        """
        self._wait_until_up()
        number = next(self._ids)
        whole = {**request, "id": number, "folder": str(self._scratch / f"probe-{number}")}
        with self._lock:
            if self.is_dead:
                raise self._died()
            self._waiting[number] = queue.Queue(1)
            try:
                assert self._child.stdin is not None
                self._child.stdin.write(json.dumps(whole).encode() + b"\n")
                self._child.stdin.flush()
            except (OSError, ValueError):  # it is gone, or was closed by another thread
                self.is_dead = True
        answer = self._take(number, request["deadline_s"] + _GRACE_S)
        seen: dict[str, Any] = answer["seen"]
        return seen

    def close(self) -> None:
        """Ends the server with all its children, and waits for that. May be called again."""
        self.is_dead = True
        with suppress(OSError, ValueError):
            assert self._child.stdin is not None
            self._child.stdin.close()  # it ends what it runs, and leaves
        if not self._has_left():
            process.end_group(self._child.pid)
            self._has_left()
        self._reader.join(_CLOSE_S)

    def _has_left(self) -> bool:
        # Once it is reaped its number may be another's: nothing is signalled after this.
        with suppress(Exception):  # TimeoutExpired
            self._child.wait(timeout=_CLOSE_S)
        return self._child.returncode is not None

    def _take(self, number: int, limit_s: float) -> dict[str, Any]:
        try:
            answer = self._waiting[number].get(timeout=limit_s)
        except queue.Empty:
            self.close()
            msg = "SIGKILL"
            raise ServerDied(msg, f"the server did not answer in {limit_s:g} s") from None
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if answer is None:
            raise self._died()
        return answer

    def _died(self) -> ServerDied:
        self._has_left()
        return ServerDied(_signal_name(self._child.returncode), self.log_tail())

    def log_tail(self) -> str:
        """The last of what the server itself wrote: torch's warnings, and faulthandler's traceback.

        Without the machine in it: it becomes part of a result.
        """
        try:
            data = self._log.read_bytes()
        except OSError:
            return ""
        folders = {
            str(self._scratch): "<probe>",
            str(self._home): "<environment>",
            str(_ABOVE): "<compile-matrix>",
            self._user: "~",
        }
        text = data[-_LOG_TAIL_BYTES:].decode("utf-8", "replace")
        return str(texts.clean(text, texts.replacing(folders)))

    def _read(self) -> None:
        assert self._child.stdout is not None
        # What is no answer of ours means a server that nobody can talk to: as if it had died.
        with self._child.stdout as answers, suppress(OSError, ValueError, AttributeError):
            for line in answers:
                message = json.loads(line)
                if message.get("ready"):
                    self._ready = message
                    self._came_up.set()
                waiting = self._waiting.get(message.get("id", 0))
                if waiting is not None:
                    with suppress(queue.Full):
                        waiting.put_nowait(message)
        with self._lock:
            self.is_dead = True
            for waiting in self._waiting.values():
                with suppress(queue.Full):
                    waiting.put_nowait(None)
        self._came_up.set()


def _signal_name(status: int | None) -> str:
    if status is None or status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
