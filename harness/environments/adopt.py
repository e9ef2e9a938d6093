"""Takes an interpreter that somebody else set up as it is; nothing is installed into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from harness import process
from harness.environments.model import ADOPTED_INDEX, Environment, hash_of
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEADLINE_S = 60.0

# torch is found, not imported: that takes seconds and may fail, which is for a probe to find out.
_QUESTION = """
import importlib.metadata, importlib.util, json, os, platform, re, sys
packages = {}
for found in importlib.metadata.distributions():
    name = found.metadata["Name"]
    if name and name not in packages:
        packages[name] = found.version
spec = importlib.util.find_spec("torch")
version = ""
if spec is not None and spec.origin:
    try:
        with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as text:
            named = re.search(r"^__version__\\b[^=]*=\\s*['\\"]([^'\\"]+)", text.read(), re.MULTILINE)
            version = named.group(1) if named else ""
    except OSError:
        pass
json.dump({
    "packages": packages,
    "has_torch": spec is not None and bool(spec.origin),
    "torch": version,
    "python": platform.python_version(),
    "implementation": sys.implementation.name,
}, sys.stdout)
"""


def adopt_interpreter(python: Path, env: Mapping[str, str]) -> Environment:
    """The environment of an existing interpreter, its packages read by running it.

    python: an executable; it is used under this very name (a virtual environment's is a link).
    Raises: HarnessError when it does not run, is no CPython, or has no torch.
    """
    python = Path(python).expanduser().absolute()
    where = str(python)
    try:
        finished = process.run(
            (str(python), "-c", _QUESTION),
            deadline_s=_DEADLINE_S,
            env=process.allowed_environment(env),
            cwd=python.parent,
            tail_bytes=4_000_000,
        )
    except OSError as error:
        message = f"this interpreter cannot be started: {error.strerror or error}"
        raise HarnessError(message, where=where) from error
    try:
        if not finished.is_success:
            raise ValueError
        answer = json.loads(finished.stdout_tail)
    except ValueError:
        last = (finished.stderr_tail.strip().splitlines() or [f"status {finished.status}"])[-1]
        message = f"this interpreter does not say what it is: {last}"
        raise HarnessError(message, where=where) from None
    if answer["implementation"] != "cpython":
        message = f"torch.compile knows CPython only, and this is {answer['implementation']}"
        raise HarnessError(message, where=where)
    if not answer["has_torch"]:
        hint = f"{python} -m pip install torch, or name another interpreter"
        message = "no torch is installed for this interpreter"
        raise HarnessError(message, where=where, hint=hint)
    packages = {str(canonicalize_name(name)): text for name, text in answer["packages"].items()}
    if answer["torch"]:
        packages["torch"] = answer["torch"]  # a source build's metadata may lag behind
    packages = dict(sorted(packages.items()))
    return Environment(
        id=hash_of(ADOPTED_INDEX, str(python), answer["python"], packages),
        python=python,
        packages=packages,
        lock_sha256="",
        index=ADOPTED_INDEX,
        size_bytes=0,
        root=None,
        python_version=answer["python"],
    )
