"""The store: a folder in which environments stand by their content, and the only way to them.

::

    environments/<id>/          a virtual environment; compile-matrix/ in it holds facts, lock, manifest
    locks/<key>/pylock.toml     what a request was resolved to
    guards/, leases/            locked files: who builds, who uses
    uv/                         uv's cache, where the user has not named another one
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.environments import disk, manifest
from harness.environments import lock as locks
from harness.environments.adopt import adopt_interpreter
from harness.environments.build import (
    TEMPORARY,
    build_environment,
    environment_id,
    last_used,
    load_environment,
    standing_roots,
)
from harness.environments.index import IndexProbe
from harness.environments.leases import Leases, guard, guard_if_free
from harness.environments.lock import Lock, Request
from harness.environments.model import (
    DEFAULT_INDEX,
    FACTS_FILE,
    FACTS_FOLDER,
    PYTORCH_CPU_INDEX,
    Environment,
    EnvironmentFailed,
    StandingEnvironment,
    StoreSize,
)
from harness.environments.room import Room
from harness.environments.tool import Uv
from harness.interpreters import uv_environment
from harness.matrix import Device, Era
from harness.results import NotRunReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.interpreters import Interpreter
    from harness.matrix import Cell, Matrix

_T = TypeVar("_T")

# uv has tried four times by then.
_PAUSES_S = (2.0, 5.0)


class EnvironmentStore:
    """Builds, reuses and evicts environments below `root`. Any of its methods may be called from any
    thread, and several processes may share a root.

    env: the environment variables of the harness. now: when the run began; aware. offline: no
    connection is opened. budget_bytes: what the store may keep; None: what suits the disk. keep: evict
    nothing. cancel: once set, what is under way ends as interrupted. on_event: called, from whichever
    thread is at work, with a line for the user now and then. Whoever prepared environments gives them
    back with `release` or, all of them, with `close`.
    """

    def __init__(
        self,
        root: Path,
        *,
        env: Mapping[str, str],
        now: datetime,
        offline: bool = False,
        budget_bytes: int | None = None,
        keep: bool = False,
        cancel: threading.Event | None = None,
        on_event: Callable[[str], None] | None = None,
    ) -> None:
        self.root = root.absolute()
        self._env = dict(env)
        self._day = now.astimezone(timezone.utc).date().isoformat()
        self._cancel = cancel or threading.Event()
        self._tell = on_event or _discard_event
        self._environments = self.root / "environments"
        self._locks = self.root / "locks"
        named = self._env.get("UV_CACHE_DIR")
        self._cache = Path(named).absolute() if named else self.root / "uv"
        self._uv = Uv(env=self._env, cache=self._cache, offline=offline, cancel=self._cancel)
        self._probe = IndexProbe(env=uv_environment(self._env))
        self._leases = Leases(self.root / "leases")
        self._room = Room(
            root=self.root,
            environments=self._environments,
            cache=self._cache,
            is_cache_ours=not named,
            budget_bytes=budget_bytes,
            keep=keep,
            try_discard=self._try_discard,
            tell=self._tell,
        )
        self._is_network_down = False
        self._pauses_s = _PAUSES_S
        self._sweeping = threading.Lock()
        self._has_swept = False

    # ------------------------------------------------------------------------------ environments

    def find(self, cell: Cell, matrix: Matrix, interpreter: Interpreter) -> Environment | None:
        """The environment that stands for the cell, if one does: some milliseconds, no connection.

        It is neither verified nor protected from eviction: enough to know whether results are still
        those of this environment. Use `prepare` before anything runs in it.
        """
        for request in self._requests(cell, matrix, interpreter):
            lock = locks.read_lock(self._locks, request)
            if lock is not None:
                found = load_environment(self._environments / environment_id(lock, interpreter))
                if found is not None:
                    return found
        return None

    def prepare(self, cell: Cell, matrix: Matrix, interpreter: Interpreter) -> Environment:
        """The cell's environment, built if it does not stand yet, and held until `release`.

        What stands is used as it is, whichever index it came from, once its files are found unchanged;
        otherwise it is built anew, without the changed files. PyTorch's CPU index is asked only when
        something must be resolved, and the default index takes its place when it does not answer.
        Raises: EnvironmentFailed; HarnessError when there is no uv.
        """
        try:
            self._sweep()
            return self._prepare(cell, self._requests(cell, matrix, interpreter), interpreter)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._room.failure() from error
            detail = f"the store at {self.root} cannot be used: {error}"
            raise EnvironmentFailed(NotRunReason.ENVIRONMENT_FAILED, detail) from error

    def adopt(self, python: Path) -> Environment:
        """An existing interpreter as an environment; nothing is installed into it.

        Raises: HarnessError when it does not run or has no torch.
        """
        return adopt_interpreter(python, self._env)

    def verify(self, environment: Environment) -> tuple[str, ...]:
        """Paths below its root that changed, came or went since it was built; empty: none did.

        Takes 0.1 to 0.2 s. An adopted environment is never said to have changed.
        """
        return () if environment.root is None else manifest.changes(environment.root)

    def release(self, environment: Environment) -> None:
        """Nothing of this process runs in the environment any longer: it may be evicted."""
        if environment.root is not None:
            _touch(environment.root)
            self._leases.give_back(environment.id)

    def close(self) -> None:
        """Release all that was prepared."""
        self._leases.give_back_all()

    # ------------------------------------------------------------------------------- for `doctor`

    def standing(self) -> tuple[StandingEnvironment, ...]:
        """What stands in the store, last used first."""
        found = []
        for root in standing_roots(self._environments):
            environment = load_environment(root)
            if environment is not None:
                with guard_if_free(self._guard_of(root.name)) as is_free:
                    used = not is_free or self._leases.is_used(root.name)
                found.append(
                    StandingEnvironment(
                        environment=environment, last_used=last_used(root), is_in_use=used
                    )
                )
        return tuple(sorted(found, key=lambda one: -one.last_used))

    def size(self) -> StoreSize:
        """What the store holds. Looks at every file: a second or two for a full one."""
        return self._room.size()

    # ------------------------------------------------------------------------------ how it is done

    def _requests(
        self, cell: Cell, matrix: Matrix, interpreter: Interpreter
    ) -> tuple[Request, ...]:
        """What may be asked for in the cell's name, the preferred one first."""
        as_of = matrix.release(cell.torch).as_of if cell.era is Era.RELEASE else ""
        mirror = self._env.get("UV_DEFAULT_INDEX") or self._env.get("UV_INDEX_URL")
        plain = Request(
            torch=cell.torch,
            era=cell.era.value,
            as_of=as_of,
            day="" if as_of else self._day,
            requirements=matrix.requirements(cell.era),
            python_version=interpreter.version,
            platform=cell.platform,
            index=DEFAULT_INDEX,
            # A mirror that this machine uses for everything leads to the same packages.
            default_index="" if mirror else matrix.indexes.default or "",
        )
        if cell.device is not Device.CPU or not cell.platform.startswith("linux"):
            # Elsewhere the default index has CPU builds only.
            return (plain,)
        if not matrix.indexes.cpu:
            return (plain,)
        return (replace(plain, index=PYTORCH_CPU_INDEX, cpu_index=matrix.indexes.cpu), plain)

    def _prepare(
        self, cell: Cell, requests: tuple[Request, ...], interpreter: Interpreter
    ) -> Environment:
        locked = [(one, locks.read_lock(self._locks, one)) for one in requests]
        for _, lock in locked:
            if lock is not None and self._stands(lock, interpreter):
                return self._stand_or_build(cell, lock, interpreter)
        # A lock, once made, is kept to: another index would be another environment, and all results of
        # this one would have to be measured again.
        ranked = sorted(locked, key=lambda pair: pair[1] is None)
        for number, (request, lock) in enumerate(ranked):
            is_last = number == len(ranked) - 1
            try:
                made = lock or self._resolve(cell, request, interpreter, is_last=is_last)
                if made is not None:
                    return self._stand_or_build(cell, made, interpreter)
            except EnvironmentFailed as failure:
                if is_last or not _is_worth_another_index(failure, request):
                    raise
                if failure.is_transient and request.cpu_index:
                    self._probe.forget(request.cpu_index)
                self._tell(
                    f"{cell.id}: {request.index} index does not serve it "
                    f"({failure.detail}); trying the next"
                )
        raise AssertionError  # the last one returns or raises

    def _stands(self, lock: Lock, interpreter: Interpreter) -> bool:
        root = self._environments / environment_id(lock, interpreter)
        return load_environment(root) is not None

    def _resolve(
        self, cell: Cell, request: Request, interpreter: Interpreter, *, is_last: bool
    ) -> Lock | None:
        """The request's lock; None: its index does not answer, and another one is left to ask."""
        is_asked = bool(request.cpu_index) and not self._uv.offline and not is_last
        if is_asked and not self._probe.answers(request.cpu_index):
            return None
        with guard(self._guards / f"lock-{request.key}.lock", cancel=self._cancel):
            lock = locks.read_lock(self._locks, request)
            if lock is None:
                self._tell(f"{cell.id}: resolving packages")
                lock = self._retried(
                    lambda: locks.make_lock(self._uv, self._locks, request, interpreter.path)
                )
        return lock

    def _stand_or_build(self, cell: Cell, lock: Lock, interpreter: Interpreter) -> Environment:
        identity = environment_id(lock, interpreter)
        root = self._environments / identity
        waiting = f"{cell.id}: waiting for another run that is at work on the same environment"
        with guard(
            self._guard_of(identity), cancel=self._cancel, on_wait=lambda: self._tell(waiting)
        ):
            environment = load_environment(root)
            if environment is not None:
                changed = manifest.changes(root)
                if changed:
                    self._discard_damaged(cell, environment, root, changed)
                    environment = None
            if environment is None:
                disk.discard(root)
                environment = self._build(cell, lock, interpreter)
            _touch(root)
            self._leases.take(identity)
            return environment

    def _build(self, cell: Cell, lock: Lock, interpreter: Interpreter) -> Environment:
        need = disk.needed_for(lock, self._cache)
        self._room.make(need)
        count = len(lock.packages)
        self._tell(f"{cell.id}: installing {count} package{'s' if count > 1 else ''}")

        def build() -> tuple[Environment, manifest.Contents]:
            return build_environment(
                self._uv,
                self._environments,
                lock,
                interpreter,
                built_for=cell.id,
                downloading=guard(self._guards / "download.lock", cancel=self._cancel),
            )

        try:
            environment, contents = self._retried(build)
        except EnvironmentFailed as failure:
            if failure.reason is not NotRunReason.DISK_FULL or not self._room.make_more(need):
                raise
            environment, contents = build()
        self._room.add(contents.own_bytes)
        return environment

    def _discard_damaged(
        self, cell: Cell, environment: Environment, root: Path, changed: tuple[str, ...]
    ) -> None:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        if self._leases.is_used(environment.id):
            detail = f"files of the environment were changed while it is in use: {changed[0]}{more}"
            raise EnvironmentFailed(NotRunReason.ENVIRONMENT_FAILED, detail)
        packages = manifest.damaged_packages(root, changed)
        whose = f" of {', '.join(packages)}" if packages else ""
        self._tell(f"{cell.id}: building anew, files{whose} were changed: {changed[0]}{more}")
        disk.discard(root)
        if packages:
            # The cache holds the same files, and would give them out again.
            finished = self._uv.run("cache", "clean", *packages, deadline_s=600, cwd=self.root)
            if not finished.is_success:
                self._tell(f"{cell.id}: uv could not clean its cache of {', '.join(packages)}")

    def _retried(self, attempt: Callable[[], _T], pauses_s: tuple[float, ...] | None = None) -> _T:
        """Try again what failed for the network, some times; at once given up when it is known down."""
        pauses_s = self._pauses_s if pauses_s is None else pauses_s
        try:
            result = attempt()
        except EnvironmentFailed as failure:
            is_network = failure.reason is NotRunReason.INDEX_UNREACHABLE
            if not (is_network and failure.is_transient):
                raise
            if self._is_network_down or not pauses_s:
                self._is_network_down = True
                raise
            if self._cancel.wait(pauses_s[0]):
                raise
        else:
            self._is_network_down = False
            return result
        return self._retried(attempt, pauses_s[1:])

    # --------------------------------------------------------------------------------------- places

    @property
    def _guards(self) -> Path:
        return self.root / "guards"

    def _guard_of(self, identity: str) -> Path:
        return self._guards / f"environment-{identity}.lock"

    def _try_discard(self, root: Path) -> int:
        """Evict one environment, unless somebody uses it; bytes freed."""
        with guard_if_free(self._guard_of(root.name)) as is_free:
            if not is_free or self._leases.is_used(root.name):
                return 0
            environment = load_environment(root)
            name = environment.built_for if environment is not None else root.name
            self._tell(f"making room: the environment of {name} is removed")
            return disk.discard(root)

    def _sweep(self) -> None:
        """Once a run, remove what dead builders left. A living one holds its environment's guard."""
        with self._sweeping:
            if self._has_swept:
                return
            self._has_swept = True
        for path in self._environments.glob(f"{TEMPORARY}*"):
            identity = path.name.removeprefix(TEMPORARY).partition("-")[0]
            with guard_if_free(self._guard_of(identity)) as is_free:
                if is_free:
                    shutil.rmtree(path, ignore_errors=True)
        for path in self._locks.glob(f"{TEMPORARY}*"):
            key = path.name.removeprefix(TEMPORARY).partition("-")[0]
            with guard_if_free(self._guards / f"lock-{key}.lock") as is_free:
                if is_free:
                    shutil.rmtree(path, ignore_errors=True)
        disk.sweep_trash(self._environments)


def _discard_event(line: str) -> None:
    """Nobody listens."""


def _is_worth_another_index(failure: EnvironmentFailed, request: Request) -> bool:
    if not request.cpu_index:
        # A lock of the default index that can no longer be installed: PyTorch's may still have it.
        return failure.reason is NotRunReason.INDEX_UNREACHABLE
    return failure.reason in (
        NotRunReason.INDEX_UNREACHABLE,
        NotRunReason.NO_WHEEL,
        NotRunReason.ENVIRONMENT_FAILED,
    )


def _touch(root: Path) -> None:
    os.utime(root / FACTS_FOLDER / FACTS_FILE)
