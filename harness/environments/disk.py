"""What things take on the disk, and how they are removed from it.

Environments share files with each other through uv's cache, by hard links. So sizes are counted by
file, not by name, and removing an environment frees little until the cache lets go of its files, too.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from harness.environments.leases import guard_if_free
from harness.environments.manifest import disk_space

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.environments.lock import Lock

GIGABYTE = 1_000_000_000

_LEAST_FREE_BYTES = 5 * GIGABYTE
_FREELY_USED_BYTES = 40 * GIGABYTE

# Unpacked, a wheel of torch or CUDA takes 1.5 to 2 times the download; bytecode comes on top.
_UNPACKED = 2.0
_BYTECODE_BYTES = 300_000_000
_TORCH_BYTES = 1_000_000_000
_OTHER_BYTES = 20_000_000

_CACHE_WAIT_S = 60.0
_TRASH = ".trash-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that the store stands on."""

    free_bytes: int

    @classmethod
    def at(cls, path: Path) -> Disk:
        return cls(free_bytes=shutil.disk_usage(path).free)


def default_budget(disk: Disk, held_bytes: int) -> int:
    """How much the store may hold on this disk when nobody says.

    Half of what would be free without it, or all of it up to 40 GB (the cells of the quick profile
    with their CUDA wheels); but 5 GB always stay free.
    """
    available = disk.free_bytes + held_bytes
    return max(0, min(available - _LEAST_FREE_BYTES, max(_FREELY_USED_BYTES, available // 2)))


def measure(*roots: Path) -> int:
    """Disk space of all files below the roots, each counted once. Walks: some seconds for 500,000."""
    return sum(disk_space(status) for status in _distinct_files(*roots))


def measure_unlinked(cache: Path) -> int:
    """Disk space of what uv's cache alone holds: what no environment links."""
    return sum(disk_space(one) for one in _distinct_files(cache) if one.st_nlink == 1)


def needed_for(lock: Lock, cache: Path) -> int:
    """A cautious estimate of the disk space that building from the lock takes, in bytes."""
    cached = cached_packages(lock, cache)
    need = _BYTECODE_BYTES
    for package in lock.packages:
        if package.name not in cached:
            guess = _TORCH_BYTES if package.name == "torch" else _OTHER_BYTES
            size = guess if package.size_bytes is None else package.size_bytes
            need += int(size * _UNPACKED)
    return need


def cached_packages(lock: Lock, cache: Path) -> frozenset[str]:
    """Names of those packages of the lock whose wheels stand unpacked in uv's cache."""
    cached = frozenset(_cached_wheels(cache))
    return frozenset(one.name for one in lock.packages if cached & _wheels_of(one.file))


def discard(path: Path) -> int:
    """Remove a folder of the store: renamed at once, so that it is never half there; bytes freed."""
    trash = path.parent / f"{_TRASH}{uuid4().hex}"
    try:
        path.rename(trash)
    except FileNotFoundError:
        return 0
    freed = measure_unlinked(trash)
    shutil.rmtree(trash, ignore_errors=True)
    return freed


def sweep_trash(folder: Path) -> None:
    """Finish what a dead process had begun to remove."""
    for trash in folder.glob(f"{_TRASH}*"):
        shutil.rmtree(trash, ignore_errors=True)


def free_from_cache(cache: Path, wanted_bytes: int, keep: Iterable[tuple[str, str]]) -> int:
    """Drop unpacked wheels that no environment links from uv's cache, oldest first; bytes freed.

    Wheels that are still linked stay: dropping them would free nothing and cost a download. `keep`
    (names and versions that living environments hold) go last: where files are copied or cloned, no
    count of links tells that they are in use. uv's own lock on its cache is held meanwhile, because a
    wheel that has just been unpacked is not linked yet; nothing is done while it stays taken. uv fetches
    a dropped wheel again when it needs it (tried).
    """
    if wanted_bytes <= 0 or not cache.is_dir():
        return 0
    kept = frozenset(keep)
    freed = 0
    with guard_if_free(cache / ".lock", wait_s=_CACHE_WAIT_S) as is_free:
        if not is_free:
            return 0
        sweep_trash(cache)
        unlinked = [one for one in map(_Archive.look_at, _archives(cache)) if one is not None]
        unlinked.sort(key=lambda one: (one.package in kept, one.changed))
        for archive in unlinked:
            if freed >= wanted_bytes:
                break
            # Out of uv's sight first: half a wheel must never be found there.
            trash = cache / f"{_TRASH}{uuid4().hex}"
            archive.path.rename(trash)
            shutil.rmtree(trash, ignore_errors=True)
            freed += archive.size_bytes
    return freed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Archive:
    """An unpacked wheel in uv's cache that nothing links."""

    path: Path
    package: tuple[str, str]
    size_bytes: int
    changed: float

    @classmethod
    def look_at(cls, path: Path) -> _Archive | None:
        size = 0
        for status in _all_files(path):
            if status.st_nlink > 1:
                return None
            size += disk_space(status)
        package = ("", "")
        for folder in path.glob("*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
            package = (canonicalize_name(name), version)
        return cls(path=path, package=package, size_bytes=size, changed=path.stat().st_mtime)


def _archives(cache: Path) -> Iterator[Path]:
    for bucket in cache.glob("archive-v*"):
        yield from (path for path in bucket.iterdir() if path.is_dir())


def _cached_wheels(cache: Path) -> Iterator[tuple[str, str, str]]:
    """Unpacked wheels in uv's cache: name, version, and tag of Python and ABI, `cp312-cp312`.

    Without the platform: some wheels (torch's among them) are renamed after they were built, and name
    another one inside. A cache serves one machine.
    """
    for archive in _archives(cache):
        for facts in archive.glob("*.dist-info/WHEEL"):
            name, _, version = facts.parent.name.removesuffix(".dist-info").rpartition("-")
            for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
                word, _, tag = line.partition(":")
                if word.strip().lower() == "tag":
                    yield canonicalize_name(name), version, tag.strip().rpartition("-")[0].lower()


def _wheels_of(file: str) -> frozenset[tuple[str, str, str]]:
    try:
        name, version, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return frozenset()
    return frozenset((name, str(version), f"{tag.interpreter}-{tag.abi}") for tag in tags)


def _distinct_files(*roots: Path) -> Iterator[os.stat_result]:
    seen: set[tuple[int, int]] = set()
    for root in roots:
        for status in _all_files(root):
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield status


def _all_files(root: Path) -> Iterator[os.stat_result]:
    """Every file below `root`. Others may remove some meanwhile."""
    folders = [str(root)]
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        # Not the entry's own: on Windows it knows neither number nor links.
                        yield os.lstat(entry.path)
