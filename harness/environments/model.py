"""What an environment is, what is written down of it, and how one fails to come about."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.results import NotRunReason

RECIPE = 1
"""How environments are built. Counted up when that changes, so that none of before is used again."""

PYTORCH_CPU_INDEX = "pytorch-cpu"
DEFAULT_INDEX = "default"
ADOPTED_INDEX = "adopted"

FACTS_FOLDER = "compile-matrix"
"""The folder inside an environment that holds what the harness knows of it."""
FACTS_FILE = "environment.json"
LOCK_FILE = "pylock.toml"  # uv recognises the format by this name
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A Python with torch in it, ready to run.

    id: hash of the lock, the interpreter and the recipe; for an adopted one, of what was found in it.
    python: the executable to run. packages: normalised name → version, as installed. lock_sha256: of the
    lock file, which stands in `root`; empty for an adopted one. index: `pytorch-cpu`, `default` or
    `adopted`: where torch came from. size_bytes: disk space of all its files, of which other
    environments may share some. root: its folder; None for an adopted one. built_for: id of the cell
    that it was built for.
    """

    id: str
    python: Path
    packages: dict[str, str]
    lock_sha256: str
    index: str
    size_bytes: int
    root: Path | None
    python_version: str
    built_for: str = ""

    @property
    def torch_version(self) -> str:
        """As torch names itself, `2.4.1+cpu`."""
        return self.packages.get("torch", "")

    @property
    def lock_file(self) -> Path | None:
        """The lock with its hashes, for whoever wants the same environment."""
        return None if self.root is None else self.root / FACTS_FOLDER / LOCK_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingEnvironment:
    """An environment of the store as `doctor` shows it. last_used: seconds since the epoch."""

    environment: Environment
    last_used: float
    is_in_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSize:
    """Disk space of the store, each file counted once however many environments share it.

    held_bytes: all of it. cache_bytes: what uv's cache alone holds, linked by no environment.
    free_bytes: free on the disk. budget_bytes: what the store may hold now. is_cache_ours: whether the
    cache may be emptied by us. is_linked: whether cache and environments share a file system, without
    which every environment is a full copy.
    """

    held_bytes: int
    cache_bytes: int
    free_bytes: int
    budget_bytes: int
    is_cache_ours: bool
    is_linked: bool


class EnvironmentFailed(Exception):
    """A cell's environment could not be built; the cell is not-run and the run goes on.

    detail: one sentence. evidence: uv's own last lines, without credentials. is_transient: another
    attempt, now or another day, may succeed.
    """

    def __init__(
        self, reason: NotRunReason, detail: str, evidence: str = "", *, is_transient: bool = False
    ) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason = reason
        self.detail = detail
        self.evidence = evidence
        self.is_transient = is_transient


def hash_of(*parts: object) -> str:
    """The first 16 hexadecimal digits of the sha256 of the parts, written as JSON."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def python_in(root: Path) -> Path:
    """The executable of the virtual environment at `root`."""
    return root / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def site_packages_in(root: Path, python_version: str) -> Path:
    """Where packages stand in the virtual environment at `root`."""
    if sys.platform == "win32":
        return root / "Lib/site-packages"
    minor = ".".join(python_version.split(".")[:2])
    return root / f"lib/python{minor}/site-packages"


def to_dict(environment: Environment) -> dict[str, Any]:
    """For `environment.json`; paths are left out: the folder is moved into place afterwards."""
    facts = asdict(environment)
    del facts["root"], facts["python"]
    return {"recipe": RECIPE, **facts}


def from_dict(facts: Mapping[str, Any], root: Path) -> Environment:
    """Raises: KeyError, TypeError or ValueError when these are not the facts of this recipe."""
    if facts["recipe"] != RECIPE:
        message = f"built by recipe {facts['recipe']}"
        raise ValueError(message)
    known = {name: facts[name] for name in Environment.__slots__ if name not in ("root", "python")}
    return Environment(root=root, python=python_in(root), **known)
