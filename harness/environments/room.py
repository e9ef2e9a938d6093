"""Room for the next environment: how much the store may hold, and what goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.environments import disk
from harness.environments.build import last_used, load_environment, standing_roots
from harness.environments.disk import Disk
from harness.environments.model import EnvironmentFailed, StoreSize
from harness.results import NotRunReason

# A build that would leave less than this is not begun: the cases write, too.
_RESERVE_BYTES = disk.GIGABYTE


@dataclass(slots=True, kw_only=True)
class Room:
    """Keeps the store within its budget. One builder at a time makes room.

    The budget bounds what is kept, not what may be built: environments in use cannot be evicted, and a
    cell that the disk can hold is worth more than a bound. budget_bytes: None: what suits the disk.
    keep: evict nothing. try_discard: removes one environment unless it is in use, and returns the bytes
    that this freed.
    """

    root: Path
    environments: Path
    cache: Path
    is_cache_ours: bool
    budget_bytes: int | None
    keep: bool
    try_discard: Callable[[Path], int]
    tell: Callable[[str], None]
    _held_bytes: int | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def make(self, need_bytes: int) -> None:
        """Evict what was not used for longest until the need fits.

        Raises: EnvironmentFailed when the disk itself stays too full for it.
        """
        with self._lock:
            self.root.mkdir(parents=True, exist_ok=True)
            if self._excess(need_bytes) > 0 and not self.keep:
                # What is held was counted along from build to build, too high: evict by the truth.
                self._held_bytes = None
                self._free(self._excess(need_bytes))
                self._held_bytes = None
            if Disk.at(self.root).free_bytes < need_bytes + _RESERVE_BYTES:
                raise self.failure(need_bytes)

    def make_more(self, wanted_bytes: int) -> bool:
        """For a build that filled the disk all the same: whether anything could be freed."""
        with self._lock:
            self._held_bytes = None
            return not self.keep and self._free(wanted_bytes) > 0

    def add(self, size_bytes: int) -> None:
        """An environment was built that took this much for itself."""
        with self._lock:
            if self._held_bytes is not None:
                self._held_bytes += size_bytes

    def failure(self, need_bytes: int = 0) -> EnvironmentFailed:
        """That there is no room, with the numbers. need_bytes: 0: not known."""
        place = next(path for path in (self.root, *self.root.parents) if path.exists())
        free = Disk.at(place).free_bytes / disk.GIGABYTE
        needs = f", and about {need_bytes / disk.GIGABYTE:.1f} GB are needed" if need_bytes else ""
        detail = f"{free:.1f} GB are free at {self.root}{needs}"
        return EnvironmentFailed(NotRunReason.DISK_FULL, detail, is_transient=True)

    def size(self) -> StoreSize:
        """What stands now. Looks at every file: a second or two for a full store."""
        self.root.mkdir(parents=True, exist_ok=True)
        held = self._measure()
        now = Disk.at(self.root)
        return StoreSize(
            held_bytes=held,
            cache_bytes=disk.measure_unlinked(self.cache),
            free_bytes=now.free_bytes,
            budget_bytes=self._limit(now, held),
            is_cache_ours=self.is_cache_ours,
            is_linked=_device_of(self.cache) in (None, _device_of(self.root)),
        )

    def _excess(self, need_bytes: int) -> int:
        """How much there is too much of for the need; negative: it fits."""
        if self._held_bytes is None:
            self._held_bytes = self._measure()
        now = Disk.at(self.root)
        over_budget = self._held_bytes + need_bytes - self._limit(now, self._held_bytes)
        return max(over_budget, need_bytes + _RESERVE_BYTES - now.free_bytes)

    def _limit(self, now: Disk, held_bytes: int) -> int:
        if self.budget_bytes is not None:
            return self.budget_bytes
        return disk.default_budget(now, held_bytes)

    def _measure(self) -> int:
        return disk.measure(self.root if self.is_cache_ours else self.environments)

    def _free(self, wanted_bytes: int) -> int:
        """Free disk space: first what no environment holds, then environments, oldest use first."""
        freed = self._free_from_cache(wanted_bytes)
        for root in sorted(standing_roots(self.environments), key=last_used):
            if freed >= wanted_bytes:
                break
            freed += self.try_discard(root)
            freed += self._free_from_cache(wanted_bytes - freed)
        return freed

    def _free_from_cache(self, wanted_bytes: int) -> int:
        if not self.is_cache_ours:
            return 0
        standing = filter(None, map(load_environment, standing_roots(self.environments)))
        held = (package for one in standing for package in one.packages.items())
        return disk.free_from_cache(self.cache, wanted_bytes, held)


def _device_of(path: Path) -> int | None:
    try:
        return path.stat().st_dev
    except OSError:
        return None
