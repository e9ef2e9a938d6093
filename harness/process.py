"""The one place of the harness that starts processes, and the only one that ends them.

(The worker, which runs inside a cell and may import nothing of this, starts its own.) Every start states
a deadline, an environment and where output goes; the child leads its own process group, and the group is
ended as a whole, then reaped. Nothing here reads this process's own environment: it is passed in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

Child: TypeAlias = "subprocess.Popen[bytes]"
PIPE = subprocess.PIPE
DISCARD = subprocess.DEVNULL

_GRACE_S = 2.0
_REAP_S = 5.0
_DRAIN_S = 1.0
_TAIL_BYTES = 64 * 1024

_ALLOWED_TEXT = """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TEMP TMP
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT NETRC
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH
    CC CXX CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH SDKROOT DEVELOPER_DIR
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA
    LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) COMMONPROGRAMFILES NUMBER_OF_PROCESSORS
    PROCESSOR_ARCHITECTURE OS INCLUDE LIB LIBPATH VCINSTALLDIR VSINSTALLDIR WINDOWSSDKDIR
"""
_ALLOWED = frozenset(_ALLOWED_TEXT.split())
_ALLOWED_PREFIXES = ("LC_", "CUDA_", "NVIDIA_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a child ended.

    status: its exit status, on POSIX minus the number of the signal that ended it; None: it could not be
    reaped. stdout_tail, stderr_tail: the last bytes of each, as text. seconds: wall time.
    """

    status: int | None
    stdout_tail: str
    stderr_tail: str
    timed_out: bool = False
    cancelled: bool = False
    seconds: float = 0.0

    @property
    def is_success(self) -> bool:
        return self.status == 0 and not self.timed_out and not self.cancelled


def allowed_environment(
    source: Mapping[str, str],
    *,
    allow: Iterable[str] = (),
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables of `source` that a child may see, then `overrides`.

    An allow-list, because a setting of the user's shell that nobody recorded (`PYTHONPATH`,
    `TORCH_LOGS`, `PIP_INDEX_URL`) must not decide a measurement. allow: further names; one that ends
    in `*` is a prefix. Names are compared as the platform does, without case on Windows.
    """
    fold = str.upper if sys.platform == "win32" else str
    further = [fold(name) for name in allow]
    names = _ALLOWED.union(name for name in further if not name.endswith("*"))
    prefixes = (*_ALLOWED_PREFIXES, *(name[:-1] for name in further if name.endswith("*")))
    kept = {
        name: value
        for name, value in source.items()
        if fold(name) in names or fold(name).startswith(prefixes)
    }
    return {**kept, **(overrides or {})}


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: int = DISCARD,
    stdout: int = DISCARD,
    stderr: int = DISCARD,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a long-lived child at the head of its own process group; whoever starts it ends it.

    stdin, stdout, stderr: `PIPE`, `DISCARD` or a descriptor. pass_fds: descriptors that the child
    inherits (POSIX). End it with `end_group(child.pid)`, then reap it with `child.wait`.
    Raises: OSError when `argv[0]` cannot be started.
    """
    return _start(tuple(argv), dict(env), cwd, (stdin, stdout, stderr), tuple(pass_fds))


def run(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str],
    cwd: Path,
    tail_bytes: int = _TAIL_BYTES,
    grace_s: float = _GRACE_S,
    cancel: threading.Event | None = None,
) -> Finished:
    """Run a child to its end and say how it ended, never later than its deadline and the grace.

    deadline_s: seconds until the group is told to terminate; grace_s: seconds from there until it is
    killed. cancel: set from another thread, ends the child in the same way. What the child leaves
    running in its group when it ends is killed. Output is read as it comes, so that no flood blocks the
    child, and only its last `tail_bytes` are kept. Standard input is empty.
    Raises: OSError when `argv[0]` cannot be started.
    """
    begun = time.monotonic()
    child = start(argv, env=env, cwd=cwd, stdout=PIPE, stderr=PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    tails = (_Tail(child.stdout, tail_bytes), _Tail(child.stderr, tail_bytes))
    timed_out = cancelled = False
    try:
        while not _has_ended(child):
            elapsed = time.monotonic() - begun
            cancelled = cancel is not None and cancel.is_set()
            timed_out = not cancelled and elapsed >= deadline_s
            if cancelled or timed_out:
                end_group(child.pid, grace_s=grace_s)
                break
            # Short at first (a probe of an interpreter takes 20 ms), then easy on the machine.
            pause = min(max(0.001, elapsed / 20), 0.05, max(0.001, deadline_s - elapsed))
            if cancel is None:
                time.sleep(pause)
            else:
                cancel.wait(pause)
        else:
            # Before it is reaped: until then nobody else can have been given its number.
            _kill_group(child.pid)
    except BaseException:
        try:
            end_group(child.pid, grace_s=grace_s)
        finally:
            _kill_group(child.pid)  # a second Ctrl-C does not wait for the grace
        raise
    finally:
        status = _reap(child)
    until = time.monotonic() + _DRAIN_S
    return Finished(
        status=status,
        stdout_tail=tails[0].text(until),
        stderr_tail=tails[1].text(until),
        timed_out=timed_out,
        cancelled=cancelled,
        seconds=time.monotonic() - begun,
    )


def _reap(child: Child) -> int | None:
    # A process in uninterruptible sleep outlives even its kill: it must not hold the harness up.
    with suppress(subprocess.TimeoutExpired):
        return child.wait(timeout=_REAP_S)
    return None


class _Tail:
    """Reads a stream to its end in a thread of its own and keeps the last bytes."""

    def __init__(self, stream: IO[bytes], limit_bytes: int) -> None:
        self._stream = stream
        self._limit_bytes = limit_bytes
        self._kept = bytearray()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._pump, name="output", daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        with self._stream as stream, suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), 65536):
                with self._lock:
                    self._kept += chunk
                    if len(self._kept) > 2 * self._limit_bytes:
                        del self._kept[: -self._limit_bytes]

    def text(self, until: float) -> str:
        # A grandchild that left the group may hold the pipe open for ever: what is there must do.
        self._thread.join(timeout=max(0.0, until - time.monotonic()))
        with self._lock:
            kept = bytes(self._kept[-self._limit_bytes :])
        return kept.decode("utf-8", "replace").replace("\r\n", "\n")


if sys.platform == "win32":  # pragma: no cover

    def _start(
        argv: tuple[str, ...],
        env: dict[str, str],
        cwd: Path,
        streams: tuple[int, int, int],
        pass_fds: tuple[int, ...],
    ) -> Child:
        if pass_fds:
            message = "descriptors cannot be passed to a child on Windows"
            raise ValueError(message)
        return subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )

    def _has_ended(child: Child) -> bool:
        return child.poll() is not None

    def end_group(pid: int, *, grace_s: float = _GRACE_S) -> None:
        """End the process and all its descendants: terminate, wait `grace_s` seconds, kill."""
        import psutil

        try:
            leader = psutil.Process(pid)
            members = [*leader.children(recursive=True), leader]
        except psutil.NoSuchProcess:
            return
        for member in members:
            with suppress(psutil.Error):
                member.terminate()
        _, alive = psutil.wait_procs(members, timeout=grace_s)
        for member in alive:
            with suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(alive, timeout=_GRACE_S)

    def _kill_group(pid: int) -> None:
        """Nothing: once its parent is gone, Windows no longer says whose child a process was."""

else:

    def _start(
        argv: tuple[str, ...],
        env: dict[str, str],
        cwd: Path,
        streams: tuple[int, int, int],
        pass_fds: tuple[int, ...],
    ) -> Child:
        return subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            pass_fds=pass_fds,
            start_new_session=True,
        )

    def _has_ended(child: Child) -> bool:
        return child.returncode is not None or _leader_has_ended(child.pid)

    def end_group(pid: int, *, grace_s: float = _GRACE_S) -> None:
        """End the process group that `pid` leads: terminate, wait up to `grace_s` seconds, kill.

        The leader is left to its parent to reap. Does nothing when the group is gone already. Never
        waits longer than the grace and two seconds.
        """
        if not _signal_group(pid, signal.SIGTERM):
            return
        _wait_for_leader(pid, grace_s)
        if _signal_group(pid, signal.SIGKILL):
            _wait_for_leader(pid, _GRACE_S)

    def _kill_group(pid: int) -> None:
        _signal_group(pid, signal.SIGKILL)

    def _signal_group(pid: int, number: signal.Signals) -> bool:
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            return False
        return True

    def _wait_for_leader(pid: int, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not _leader_has_ended(pid) and time.monotonic() < until:
            time.sleep(0.01)

    def _leader_has_ended(pid: int) -> bool:
        """Whether the process is over, reaped or not; it is not reaped here.

        Its number, and with it its group's, stays its own until it is reaped: a group that is
        signalled before then can be no stranger's.
        """
        if hasattr(os, "waitid"):
            with suppress(ChildProcessError):
                flags = os.WEXITED | os.WNOWAIT | os.WNOHANG
                return os.waitid(os.P_PID, pid, flags) is not None
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _is_zombie(pid)

    def _is_zombie(pid: int) -> bool:
        # Where waitid is missing (macOS before Python 3.13), or another's child.
        import psutil

        try:
            return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True
