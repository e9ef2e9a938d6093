"""Brings a case into the process: as a module, afresh for every execution, or as a plain script."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import sys
import traceback
from types import ModuleType
from typing import Any

from harness.worker import texts

_MODULE_NAME = "compile_matrix_case"


def load_case(file: str) -> ModuleType:
    """Executes the case as a new module, with the footer's `__main__` block left out.

    Raises whatever the case raises. Each call gives new functions, classes and parameters, so that no
    execution sees what another one left behind.
    """
    spec = importlib.util.spec_from_file_location(_MODULE_NAME, file)
    if spec is None or spec.loader is None:
        msg = f"{file} is not a Python file"
        raise ImportError(msg)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE_NAME] = module  # dataclasses and pickle look a class up by its module
    spec.loader.exec_module(module)
    return module


def run_script(file: str) -> int:
    """Runs a plain script as `python file` does, and returns its exit status.

    Raises whatever the script raises, SystemExit excepted.
    """
    sys.argv = [file]
    sys.path[0:0] = [file.rsplit("/", 1)[0].rsplit("\\", 1)[0]]
    try:
        runpy.run_path(file, run_name="__main__")
    except SystemExit as leaving:
        return exit_status(leaving)
    return 0


def exit_status(leaving: SystemExit) -> int:
    """The number that the interpreter would exit with."""
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code
    sys.stderr.write(f"{leaving.code}\n")
    return 1


def missing_here(error: BaseException, file: str) -> str:
    """What the case needs and this cell does not have: a sentence, or "" when the error is another.

    An import or an attribute of torch itself that does not exist, or syntax of a later Python in the
    case's own file. Where torch itself asked for what it has not, it is torch that failed.
    """
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"needs another Python: {error.msg} (line {error.lineno})"
    if _was_asked_by_torch(error):
        return ""
    if isinstance(error, ImportError) and _is_torch(error.name):
        return f"torch has no such module or name here: {error}"
    if isinstance(error, AttributeError):
        owner: Any = getattr(error, "obj", None)
        named = re.match(r"module '(torch[\w.]*)' has no attribute", texts.text_of(error))
        if named or (isinstance(owner, ModuleType) and _is_torch(owner.__name__)):
            return f"torch has no such name here: {error}"
    return ""


def _was_asked_by_torch(error: BaseException) -> bool:
    # The import system stands between the two, or a module's own `__getattr__`.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen importlib") and frame.name != "__getattr__"
    ]
    if not frames:
        return False
    asking = frames[-1].filename
    home = os.path.dirname(getattr(sys.modules.get("torch"), "__file__", None) or "")
    installed = re.search(r"[/\\](?:site|dist)-packages[/\\]torch[/\\]", asking)
    return bool(installed) or (bool(home) and asking.startswith(home + os.sep))


def _is_torch(name: str | None) -> bool:
    return name is not None and (name == "torch" or name.startswith("torch."))
