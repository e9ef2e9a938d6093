"""`doctor`: what this machine offers a run, and what stands in the store."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from harness import machine, process
from harness.commands.project import find_project
from harness.commands.run import open_store
from harness.errors import ExitStatus
from harness.interpreters import find_interpreters
from harness.matrix import load_matrix

if TYPE_CHECKING:
    import argparse

    from harness.environments import StandingEnvironment, StoreSize
    from harness.interpreters import Interpreter
    from harness.matrix import Matrix


def doctor(options: argparse.Namespace) -> ExitStatus:
    """Prints the facts, each with what to do where something is missing. 1 where no cell could run."""
    env = dict(os.environ)
    matrix = load_matrix(find_project(options.project) / "matrix.yaml")
    found = find_interpreters([python.version for python in matrix.pythons], env=env)
    store = open_store(options, env)
    compiler = machine.compiler_line(process.allowed_environment(env))
    if options.json:
        document = _as_json(matrix, found, compiler, store.standing(), store.size())
        print(
            json.dumps(
                {"store": {**document.pop("store"), "root": str(store.root)}, **document}, indent=2
            )
        )
    else:
        _print(matrix, found, compiler, store.standing(), store.size(), str(store.root))
    return ExitStatus.OK if found else ExitStatus.DIFFERENT


def _print(
    matrix: Matrix,
    found: dict[str, Interpreter],
    compiler: str,
    standing: tuple[StandingEnvironment, ...],
    size: StoreSize,
    root: str,
) -> None:
    print("interpreters")
    for python in matrix.pythons:
        interpreter = found.get(python.version)
        if interpreter is None:
            todo = (
                "its cells are not-run"
                if python.only_if_found
                else "uv will be asked to download one"
            )
            print(f"  {python.version:<6} none found: {todo}")
            continue
        headers = (
            "" if interpreter.has_headers else "; no Python.h: Inductor cannot compile with it"
        )
        print(
            f"  {python.version:<6} {interpreter.version:<9} {interpreter.path} ({interpreter.source}){headers}"
        )
    print("compiler")
    print(f"  {compiler or 'none: Inductor needs one, such as g++; dynamo and aot do not'}")
    print("devices")
    print(f"  cpu: {machine.cores()} cores, {machine.live_cells(machine.cores())} cells at once")
    print(f"  cuda: {'found' if machine.has_cuda_device() else 'none: CUDA cells are not-run'}")
    print("store")
    print(f"  {root}")
    print(
        f"  {_gb(size.held_bytes)} held, {_gb(size.cache_bytes)} of it only uv's cache;"
        f" budget {_gb(size.budget_bytes)}; {_gb(size.free_bytes)} free on the disk"
    )
    if not size.is_linked:
        print("  the cache is on another disk than the environments: each is a full copy")
    print("environments, last used first; sizes count what they share")
    for one in standing:
        environment = one.environment
        used = time.strftime("%Y-%m-%d", time.gmtime(one.last_used))
        state = "  in use" if one.is_in_use else ""
        print(
            f"  {environment.id}  {environment.built_for:<16} Python {environment.python_version:<8}"
            f" torch {environment.torch_version:<12} {_gb(environment.size_bytes):>8}"
            f"  {environment.index:<11} used {used}{state}"
        )
    if not standing:
        print("  none yet")


def _as_json(
    matrix: Matrix,
    found: dict[str, Interpreter],
    compiler: str,
    standing: tuple[StandingEnvironment, ...],
    size: StoreSize,
) -> dict[str, Any]:
    return {
        "schema": 1,
        "interpreters": {
            python.version: {
                "version": found[python.version].version,
                "path": str(found[python.version].path),
                "has_headers": found[python.version].has_headers,
            }
            if python.version in found
            else None
            for python in matrix.pythons
        },
        "compiler": compiler or None,
        "cores": machine.cores(),
        "cuda": machine.has_cuda_device(),
        "store": {
            "held_bytes": size.held_bytes,
            "cache_bytes": size.cache_bytes,
            "budget_bytes": size.budget_bytes,
            "free_bytes": size.free_bytes,
            "is_linked": size.is_linked,
        },
        "environments": [
            {
                "id": one.environment.id,
                "cell": one.environment.built_for,
                "python": one.environment.python_version,
                "torch": one.environment.torch_version,
                "index": one.environment.index,
                "size_bytes": one.environment.size_bytes,
                "last_used": int(one.last_used),
                "is_in_use": one.is_in_use,
            }
            for one in standing
        ],
    }


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
