"""What `python cases/bytecode/walrus.py` does: the case on each of its paths, each with its verdict."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

from harness.worker import observe, probe
from harness.worker.paths import MAIN_PATHS, PATHS


def main(file: str) -> None:
    """Prints a line for each path and exits: 0 where all work (or cannot be asked here), else 1.

    Paths named on the command line are run instead of the case's own.
    """
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    paths = sys.argv[1:] or _paths_of(text)
    unknown = [path for path in paths if path not in PATHS or path == "script"]
    if unknown:
        sys.exit(
            f"{unknown[0]} is no path; there are: {', '.join(p for p in PATHS if p != 'script')}"
        )
    observe.install()
    kind = "check" if re.search(r"^def check\(", text, re.MULTILINE) else "run"
    failed = False
    for path in paths:
        seen = _probe(file, kind, path)
        failed = failed or seen["verdict"] in (
            "uncompiled",
            "wrong",
            "error",
            "out-of-memory",
            "invalid",
        )
        print(_line(path, seen))
    sys.exit(1 if failed else 0)


def _probe(file: str, kind: str, path: str) -> dict[str, Any]:
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
    observe.RECORD.clear()
    name = re.sub(r"\.py$", "", file.replace("\\", "/")).rsplit("/", 1)[-1]
    return probe.examine({"case": name, "file": file, "kind": kind, "path": path})


def _paths_of(text: str) -> list[str]:
    found = re.search(r"^# paths = (\[.*\])", text, re.MULTILINE)
    return list(ast.literal_eval(found.group(1))) if found else list(MAIN_PATHS)


def _line(path: str, seen: dict[str, Any]) -> str:
    graphs, ops = seen["graphs"], seen["ops"]
    counted = f" ({graphs} graph{'s' if graphs != 1 else ''}, {ops} operations)" if graphs else ""
    lines = [
        f"{path}: {seen['verdict']}{counted}{': ' + seen['message'] if seen['message'] else ''}"
    ]
    lines += [f"  break at {b['file']}:{b['line']}: {b['reason']}" for b in seen["breaks"]]
    return "\n".join(lines)
