"""Times single probes in a cell's warm server, and Inductor's against what g++ alone takes.

g++ is measured inside the same probes: CXX names a small script that notes how long the compiler ran.
(torch 2.0 does not read CXX; its cells print no ratio.)
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
from datetime import datetime, timezone
from pathlib import Path

from platformdirs import user_cache_path

from harness.cell_server import CellServer, cell_environment
from harness.corpus import load_corpus
from harness.environments import EnvironmentStore
from harness.interpreters import find_interpreters
from harness.machine import current_platform
from harness.matrix import load_matrix

ROOT = Path(__file__).resolve().parents[1]
CASES = (
    ("gate/module", "dynamo"),
    ("bytecode/walrus", "dynamo"),
    ("gate/module", "aot"),
    ("gate/decorator", "inductor"),
    ("inductor/complex_product", "inductor"),
)
REPEATS = 9
_TIMER = """#!/bin/sh
begun=$(date +%s.%N)
g++ "$@"
status=$?
echo "$begun $(date +%s.%N)" >> {log}
exit $status
"""


def main() -> None:
    """Prints a line for each cell, case and path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="+")
    options = parser.parse_args()
    matrix = load_matrix(ROOT / "matrix.yaml")
    env = dict(os.environ)
    found = find_interpreters([python.version for python in matrix.pythons], env=env)
    cells = matrix.cells(options.cells, platform=current_platform(), found_pythons=frozenset(found))
    named = env.get("COMPILE_MATRIX_CACHE")
    store = EnvironmentStore(
        Path(named) if named else user_cache_path("compile-matrix"),
        env=env,
        now=datetime.now(timezone.utc),
        cancel=threading.Event(),
    )
    cases = {case.id: case for case in load_corpus([ROOT / "cases"]).cases}
    for cell in cells:
        environment = store.prepare(cell, matrix, found[cell.python])
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "compiler.log"
            timer = Path(folder) / "g++-timer"
            timer.write_text(_TIMER.format(log=log), encoding="utf-8")
            timer.chmod(0o755)
            variables = {**cell_environment(env, environment.python, "cpu"), "CXX": str(timer)}
            server = CellServer(environment.python, variables, Path(folder) / "scratch", fork=True)
            try:
                print(f"{cell.id}: server ready after {server.ready['seconds']:.1f} s")
                for case_id, path in CASES:
                    _measure(server, cases[case_id].file, case_id, path, log)
            finally:
                server.close()
        store.release(environment)


def _measure(server: CellServer, file: Path, case_id: str, path: str, log: Path) -> None:
    seconds, compiler = [], []
    for _ in range(REPEATS + 1):
        log.unlink(missing_ok=True)
        text = file.read_text(encoding="utf-8")
        seen = server.probe(
            {
                "case": case_id,
                "file": str(file),
                "kind": "check" if "\ndef check(" in text else "run",
                "path": path,
                "device": "cpu",
                "deadline_s": 120.0,
                "memory_bytes": 0,
                "isolation": "fork",
            }
        )
        if seen["verdict"] not in ("full", "partial"):
            print(f"  {case_id} {path}: {seen['verdict']}: {seen['message'][:100]}")
            return
        seconds.append(seen["seconds"])
        spans = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        compiler.append(sum(float(b) - float(a) for a, b in (span.split() for span in spans)))
    middle, cxx = statistics.median(seconds[1:]), statistics.median(compiler[1:])
    ratio = f", g++ {cxx:.2f} s, ratio {middle / cxx:.2f}" if cxx else ""
    print(f"  {case_id} {path}: median {middle:.3f} s of {REPEATS}{ratio}")


if __name__ == "__main__":
    sys.exit(main())
