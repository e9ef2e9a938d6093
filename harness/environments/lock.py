"""What is asked for in an environment, and the lock file that answers it.

A lock is kept by its request: asked for again, it is read, and no connection is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from harness.environments.model import (
    DEFAULT_INDEX,
    LOCK_FILE,
    PYTORCH_CPU_INDEX,
    RECIPE,
    EnvironmentFailed,
    hash_of,
)
from harness.environments.tool import failure_of
from harness.results import NotRunReason

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

    from harness.environments.tool import Uv

_DEADLINE_S = 900.0
_ENTRY = b"[[packages]]\n"
_REQUEST_FILE = (
    "pyproject.toml"  # the only kind of file that can name an index for one package alone
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for: two requests with the same key have the same lock.

    torch: exact version. requirements: what stands beside it. as_of: UTC time up to which packages are
    chosen; empty: no such limit. day: UTC date of asking where there is no such limit, else empty.
    index: `pytorch-cpu` or `default`. cpu_index: URL that torch alone comes from; empty with `default`.
    default_index: URL of the default index where it is not uv's own.
    """

    torch: str
    era: str
    as_of: str
    day: str
    requirements: tuple[str, ...]
    python_version: str
    platform: str
    index: str
    cpu_index: str = ""
    default_index: str = ""

    @property
    def key(self) -> str:
        return hash_of(RECIPE, asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPackage:
    """One package of a lock. file: name of its wheel. size_bytes: to download; None: not known."""

    name: str
    version: str
    file: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock file. text: its bytes, which name every wheel with its hash."""

    request: Request
    text: bytes
    packages: tuple[LockedPackage, ...]

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    def only(self, names: frozenset[str]) -> bytes:
        """The text of a lock file that holds these of its packages."""
        head, *entries = self.text.split(_ENTRY)
        kept = (
            entry
            for package, entry in zip(self.packages, entries, strict=True)
            if package.name in names
        )
        return _ENTRY.join((head, *kept))


def read_lock(folder: Path, request: Request) -> Lock | None:
    """The lock that stands in the store's `folder` for the request; None when there is none."""
    try:
        text = (folder / request.key / LOCK_FILE).read_bytes()
        return Lock(request=request, text=text, packages=_packages_of(text))
    except (OSError, ValueError, KeyError):  # a damaged lock is as good as none: it is made again
        return None


def make_lock(uv: Uv, folder: Path, request: Request, interpreter: Path) -> Lock:
    """Resolve the request and keep the lock in the store's `folder`. Needs the network, once.

    Of PyTorch's index, which gives no reliable dates, torch alone is taken, in its exact version; all
    else comes from the default index as of its date. Whoever calls holds the request's guard.
    Raises: EnvironmentFailed.
    """
    temporary = folder / f".tmp-{request.key}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        (temporary / _REQUEST_FILE).write_text(_project_of(request), encoding="utf-8")
        finished = uv.run(
            *("pip", "compile", "--quiet", "--no-header", "--no-annotate"),
            *("--format", "pylock.toml", "--only-binary", ":all:", "--python", str(interpreter)),
            *_options_of(request),
            *("--output-file", str(temporary / LOCK_FILE), str(temporary / _REQUEST_FILE)),
            deadline_s=_DEADLINE_S,
            cwd=temporary,
        )
        if not finished.is_success:
            raise failure_of(finished, "resolving packages")
        text = (temporary / LOCK_FILE).read_bytes()
        lock = Lock(request=request, text=text, packages=_packages_of(text))
        shutil.rmtree(folder / request.key, ignore_errors=True)
        temporary.replace(folder / request.key)
    except (ValueError, KeyError) as error:
        detail = f"uv wrote a lock file that cannot be read: {error}"
        raise EnvironmentFailed(NotRunReason.ENVIRONMENT_FAILED, detail) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return lock


def _options_of(request: Request) -> tuple[str, ...]:
    options: list[str] = []
    if request.default_index:
        options += ["--default-index", request.default_index]
    if request.as_of:
        options += ["--exclude-newer", request.as_of]
        if request.index == PYTORCH_CPU_INDEX:
            options += ["--exclude-newer-package", "torch=false"]
    return tuple(options)


def _project_of(request: Request) -> str:
    # Strings of JSON are strings of TOML.
    version = request.torch
    if request.index == PYTORCH_CPU_INDEX and request.platform.endswith("x86_64"):
        # Other builds of the same release stand beside it there (`+cpu.cxx11.abi`), and would win.
        version += "+cpu"
    lines = [
        "[project]",
        'name = "cell"',
        'version = "0"',
        'requires-python = ">=3.8"',
        f"dependencies = {json.dumps([f'torch=={version}', *request.requirements])}",
    ]
    if request.index != DEFAULT_INDEX:
        lines += [
            "[tool.uv.sources]",
            f"torch = {{ index = {json.dumps(request.index)} }}",
            "[[tool.uv.index]]",
            f"name = {json.dumps(request.index)}",
            f"url = {json.dumps(request.cpu_index)}",
            "explicit = true",
        ]
    return "\n".join((*lines, ""))


def _packages_of(text: bytes) -> tuple[LockedPackage, ...]:
    """Raises: ValueError or KeyError when this is no lock."""
    listed: list[dict[str, Any]] = tomllib.loads(text.decode())["packages"]
    packages = []
    for entry in listed:
        wheel: dict[str, Any] = entry["wheels"][0] if entry.get("wheels") else entry["archive"]
        path = wheel.get("url") or wheel["path"]
        packages.append(
            LockedPackage(
                name=entry["name"],
                version=entry.get("version", ""),
                file=unquote(urlsplit(path).path.rpartition("/")[2]),
                size_bytes=wheel.get("size"),
            )
        )
    return tuple(packages)
