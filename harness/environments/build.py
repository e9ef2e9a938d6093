"""Builds one environment from its lock: beside its place, then moved into it when complete."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from harness import process
from harness.environments import manifest
from harness.environments.disk import cached_packages
from harness.environments.model import (
    FACTS_FILE,
    FACTS_FOLDER,
    LOCK_FILE,
    RECIPE,
    Environment,
    EnvironmentFailed,
    from_dict,
    hash_of,
    python_in,
    site_packages_in,
    to_dict,
)
from harness.environments.tool import failure_of
from harness.results import NotRunReason

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from harness.environments.lock import Lock
    from harness.environments.tool import Uv
    from harness.interpreters import Interpreter
    from harness.process import Finished

_VENV_DEADLINE_S = 120.0
# 3 GB of wheels on a line of 1 MB/s.
_SYNC_DEADLINE_S = 3600.0
_BYTECODE_DEADLINE_S = 900.0

_NEVER_IMPORTED = (
    r"[/\\](tests?|testing[/\\]_internal|setuptools|torchgen|numpy[/\\](f2py|distutils)"
    r"|torch[/\\](onnx|utils[/\\](benchmark|hipify|tensorboard)))[/\\]"
)

TEMPORARY = ".tmp-"


def environment_id(lock: Lock, interpreter: Interpreter) -> str:
    """What an environment is known by: the same packages on the same Python, built the same way."""
    return hash_of(RECIPE, lock.sha256, interpreter.version, str(interpreter.real_path))


def load_environment(root: Path) -> Environment | None:
    """The environment that stands at `root`; None: there is none, or its Python is gone."""
    try:
        text = (root / FACTS_FOLDER / FACTS_FILE).read_text(encoding="utf-8")
        environment = from_dict(json.loads(text), root)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return environment if environment.python.exists() else None


def standing_roots(folder: Path) -> list[Path]:
    """The places in the store's `folder` where environments stand, or should."""
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []


def last_used(root: Path) -> float:
    """When the environment was last taken or given back; seconds since the epoch."""
    try:
        return (root / FACTS_FOLDER / FACTS_FILE).stat().st_mtime
    except OSError:
        return 0.0


def build_environment(
    uv: Uv,
    folder: Path,
    lock: Lock,
    interpreter: Interpreter,
    *,
    built_for: str,
    downloading: AbstractContextManager[None],
) -> tuple[Environment, manifest.Contents]:
    """Build the environment of a lock in the store's `folder`.

    It comes into being under a temporary name, complete with bytecode, its lock and its manifest, and
    is moved: a kill at any moment leaves nothing that could be taken for an environment. It may be moved
    because Python finds all it needs through `pyvenv.cfg`, which names the base absolutely, and bytecode
    is valid by its source's time and size. Whoever calls holds the environment's guard, and nothing
    stands in its place. downloading: held while uv may download.
    Raises: EnvironmentFailed; OSError when the disk refuses.
    """
    identity = environment_id(lock, interpreter)
    temporary = folder / f"{TEMPORARY}{identity}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _create(uv, temporary, interpreter)
        facts = temporary / FACTS_FOLDER
        facts.mkdir()
        (facts / LOCK_FILE).write_bytes(lock.text)
        _install(uv, temporary, lock, downloading)
        site_packages = site_packages_in(temporary, interpreter.version)
        destination = site_packages_in(folder / identity, interpreter.version)
        _compile(uv, temporary, site_packages, destination)
        contents = manifest.take(temporary)
        manifest.write(contents.manifest, temporary)
        environment = Environment(
            id=identity,
            python=python_in(temporary),
            packages=_packages_in(site_packages),
            lock_sha256=lock.sha256,
            index=lock.request.index,
            size_bytes=contents.size_bytes,
            root=temporary,
            python_version=interpreter.version,
            built_for=built_for,
        )
        (facts / FACTS_FILE).write_text(json.dumps(to_dict(environment)), encoding="utf-8")
        root = folder / identity
        temporary.replace(root)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return replace(environment, root=root, python=python_in(root)), contents


def _create(uv: Uv, root: Path, interpreter: Interpreter) -> None:
    finished = uv.run(
        # Relocatable concerns the console scripts alone: they are found from where they stand.
        *("venv", "--quiet", "--no-project", "--relocatable"),
        *("--python", str(interpreter.path), str(root)),
        deadline_s=_VENV_DEADLINE_S,
        cwd=root.parent,
    )
    if not finished.is_success:
        raise failure_of(finished, "creating the virtual environment")


def _install(uv: Uv, root: Path, lock: Lock, downloading: AbstractContextManager[None]) -> None:
    """Install what is locked: what the cache has, then what it lacks.

    uv asks the index even about a wheel that it has when the index (a mirror, often) does not say how
    long its answer holds, and then fetches all of it again: gigabytes for each cell. Offline it takes
    what it has, whose hash was verified, so that comes first. Downloads wait for each other, because two
    at once would fetch the wheels that they share twice.
    """
    whole = root / FACTS_FOLDER / LOCK_FILE
    with downloading:
        cached = cached_packages(lock, uv.cache)
        if cached:
            part = root / FACTS_FOLDER / "pylock.cached.toml"
            part.write_bytes(lock.only(cached))
            # Should it fail (part of the cache may be gone), all is left to do online.
            _sync(uv, root, part, is_offline=True)
            part.unlink()
        finished = _sync(uv, root, whole)
        if not finished.is_success:
            raise failure_of(finished, "installing packages")


def _compile(uv: Uv, root: Path, site_packages: Path, destination: Path) -> None:
    """Bytecode for what the compiler may import: imports take half as long from then on.

    destination: where `site_packages` will stand.

    Not uv's own way to do it, which takes half as long again: a third of all source is tests and tools.
    Some files are not meant for this Python and fail. What failed or was left out is compiled when it is
    imported.
    """
    finished = process.run(
        # From within, because the pattern is looked for in the whole of a path. The path that bytecode
        # names in tracebacks is the one that it will be found at.
        (
            *(str(python_in(root)), "-I", "-m", "compileall", "-qq", "-j", "0"),
            *("-x", _NEVER_IMPORTED, "-s", ".", "-p", str(destination), "."),
        ),
        deadline_s=_BYTECODE_DEADLINE_S,
        env=process.allowed_environment(uv.env),
        cwd=site_packages,
        cancel=uv.cancel,
    )
    if finished.cancelled:
        raise failure_of(finished, "compiling bytecode")


def _sync(uv: Uv, root: Path, lock_file: Path, *, is_offline: bool = False) -> Finished:
    return uv.run(
        *("pip", "sync", "--quiet", "--preview-features", "pylock", "--only-binary", ":all:"),
        *("--python", str(python_in(root)), str(lock_file)),
        deadline_s=_SYNC_DEADLINE_S,
        cwd=root.parent,
        is_offline=is_offline,
    )


def _packages_in(site_packages: Path) -> dict[str, str]:
    packages = {}
    for folder in site_packages.glob("*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
        packages[str(canonicalize_name(name))] = version
    if "torch" not in packages:
        detail = "uv reported success, but torch is not among what it installed"
        raise EnvironmentFailed(NotRunReason.ENVIRONMENT_FAILED, detail)
    return dict(sorted(packages.items()))
