"""Who builds, who uses: locks between threads and between processes that run at once.

A *guard* is held by the one that makes or removes something. A *lease* is held by whoever uses an
environment; several may. Both are locked files: a process that dies holds nothing any longer.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from filelock import FileLock, Timeout

from harness.environments.model import EnvironmentFailed
from harness.results import NotRunReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_POLL_S = 0.25


@contextmanager
def guard(
    path: Path, *, cancel: threading.Event | None = None, on_wait: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock file at `path`; wait for it as long as it takes. on_wait: called once, if so.

    Raises: EnvironmentFailed (interrupted) when `cancel` is set meanwhile.
    """
    lock = _lock_at(path)
    has_waited = False
    while True:
        try:
            lock.acquire(timeout=0)
            break
        except Timeout:
            if on_wait is not None and not has_waited:
                on_wait()
            has_waited = True
            pause = cancel or threading.Event()
            if pause.wait(_POLL_S):
                detail = "interrupted while another run was at work on the same environment"
                raise EnvironmentFailed(NotRunReason.INTERRUPTED, detail) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def guard_if_free(path: Path, *, wait_s: float = 0) -> Iterator[bool]:
    """Hold the lock file at `path` if nobody else does (within `wait_s` seconds); say whether so."""
    lock = _lock_at(path)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@dataclass(slots=True)
class Leases:
    """The leases of this process, and what others hold, in one folder."""

    folder: Path
    _held: dict[str, list[FileLock]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self, name: str) -> None:
        """Use `name`. Taken twice, it is given back twice. Whoever calls holds the guard of `name`."""
        lease = _lock_at(self.folder / f"{name}.{uuid4().hex}")
        lease.acquire(timeout=0)
        with self._lock:
            self._held.setdefault(name, []).append(lease)

    def give_back(self, name: str) -> None:
        """Use `name` no longer; nothing happens when it was not taken."""
        with self._lock:
            held = self._held.get(name, [])
            lease = held.pop() if held else None
        if lease is not None:
            _drop(lease)

    def give_back_all(self) -> None:
        """At the end of a run."""
        with self._lock:
            leases = [lease for held in self._held.values() for lease in held]
            self._held.clear()
        for lease in leases:
            _drop(lease)

    def is_used(self, name: str) -> bool:
        """Whether a living process uses `name`, this one included. Dead ones' files are removed.

        Whoever calls holds the guard of `name`, so that no lease is being taken meanwhile.
        """
        with self._lock:
            if self._held.get(name):
                return True
        for path in self.folder.glob(f"{name}.*"):
            with guard_if_free(path) as is_free:
                if not is_free:
                    return True
                with suppress(OSError):
                    path.unlink()
        return False


def _lock_at(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not bound to a thread: a builder takes a lease, the runner gives it back.
    return FileLock(path, thread_local=False)


def _drop(lease: FileLock) -> None:
    path = lease.lock_file
    lease.release()
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108 (the lock names it as text)
