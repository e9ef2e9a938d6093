"""What files an environment had when it was built, and which of them are no longer the same.

uv links files from its cache into environments. A case that writes into an installed file writes into
the cache and into every other environment that holds the package, so it must not go unnoticed.
"""

from __future__ import annotations

import csv
import json
import os
import posixpath
import stat
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from packaging.utils import canonicalize_name

from harness.environments.model import FACTS_FOLDER, MANIFEST_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Manifest: TypeAlias = "dict[str, tuple[int, int]]"
"""Path below the environment, with `/` → size in bytes, time of change in nanoseconds."""

# uv's own lock, and bytecode: Python writes it at any time, and checks it against its source itself.
_IGNORED_FILES = frozenset({".lock"})
_BYTECODE = "__pycache__"
_RECORDS = (
    "Lib/site-packages/*.dist-info/RECORD"
    if sys.platform == "win32"
    else "lib/python*/site-packages/*.dist-info/RECORD"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of a new environment.

    size_bytes: disk space of all, bytecode included. own_bytes: of those that no other environment
    shares yet: this one and at most uv's cache hold them.
    """

    manifest: Manifest
    size_bytes: int
    own_bytes: int


def take(root: Path) -> Contents:
    """Look at every file of an environment."""
    manifest: Manifest = {}
    size = own = 0
    seen: set[tuple[int, int]] = set()
    for name, status in _files(str(root)):
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            size += disk_space(status)
            own += disk_space(status) if status.st_nlink <= 2 else 0
        if f"{_BYTECODE}/" not in name:
            manifest[name] = (status.st_size, status.st_mtime_ns)
    return Contents(manifest=manifest, size_bytes=size, own_bytes=own)


def write(manifest: Manifest, root: Path) -> None:
    """Keep the manifest with its environment."""
    text = json.dumps(manifest, separators=(",", ":"))
    (root / FACTS_FOLDER / MANIFEST_FILE).write_text(text, encoding="utf-8")


def changes(root: Path) -> tuple[str, ...]:
    """Paths of the environment that changed, came or went since it was built, sorted.

    Size and time of change are compared, not contents. Where the manifest itself cannot be read, it
    is the one path.
    """
    try:
        text = (root / FACTS_FOLDER / MANIFEST_FILE).read_text(encoding="utf-8")
        then: dict[str, list[int]] = json.loads(text)
    except (OSError, ValueError):
        return (f"{FACTS_FOLDER}/{MANIFEST_FILE}",)
    changed = [
        name
        for name, status in _files(str(root), is_bytecode_skipped=True)
        if then.pop(name, None) != [status.st_size, status.st_mtime_ns]
    ]
    return tuple(sorted((*changed, *then)))


def damaged_packages(root: Path, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Packages whose files in uv's cache were changed together with the environment's, sorted.

    Only a file that is there and that something else links, too, can have carried its change further:
    one that was replaced, added or removed concerns this environment alone.
    """
    shared = {path for path in paths if _is_linked(root / path)}
    if not shared:
        return ()
    return tuple(sorted(name for name, owned in _owners(root) if shared & owned))


def disk_space(status: os.stat_result) -> int:
    """What a file takes on the disk, in bytes."""
    blocks: int | None = getattr(status, "st_blocks", None)
    if blocks is None:  # pragma: no cover (Windows)
        return -(-status.st_size // 4096) * 4096
    return blocks * 512


def _is_linked(path: Path) -> bool:
    try:
        return path.lstat().st_nlink > 1
    except OSError:
        return False


def _owners(root: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """Each installed package with the paths, below the environment, that its RECORD lists."""
    for record in root.glob(_RECORDS):
        site = record.parent.parent
        name = canonicalize_name(record.parent.name.removesuffix(".dist-info").rpartition("-")[0])
        base = site.relative_to(root).as_posix()
        with record.open(encoding="utf-8", newline="") as lines:
            owned = (row[0] for row in csv.reader(lines) if row)
            yield name, frozenset(posixpath.normpath(f"{base}/{path}") for path in owned)


def _files(root: str, *, is_bytecode_skipped: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file below `root` with its state. Tens of thousands: written to be quick."""
    folders = [root]
    skip = len(root) + 1
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if is_bytecode_skipped and entry.name == _BYTECODE:
                        continue
                    if folder != root or entry.name != FACTS_FOLDER:
                        folders.append(entry.path)
                elif folder != root or entry.name not in _IGNORED_FILES:
                    status = _status(entry)
                    if stat.S_ISREG(status.st_mode):
                        yield entry.path[skip:].replace(os.sep, "/"), status


if sys.platform == "win32":  # pragma: no cover

    def _status(entry: os.DirEntry[str]) -> os.stat_result:
        # The listing of a folder knows neither number nor links of a file there.
        return os.lstat(entry.path)

else:

    def _status(entry: os.DirEntry[str]) -> os.stat_result:
        return entry.stat(follow_symlinks=False)
