"""What the tests in this folder share: one real cell's server to probe with, and the harness as a program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cell_server import CellServer
from harness.corpus import Case, load_corpus
from harness.environments import Environment
from harness.matrix import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


ROOT = Path(__file__).parents[2]
HOSTILE = ROOT / "tests/fixtures/cases"
TINY = ROOT / "tests/fixtures/tiny"

PATIENCE_S = 120.0
"""For what must happen, on however busy a machine. Nothing is measured by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A cell, and the environment that stands for it."""

    cell: Cell
    environment: Environment


def read_case(file: Path) -> Case:
    """The one case of a file, which must be well formed."""
    corpus = load_corpus([file])
    assert not corpus.mistakes, corpus.mistakes[0].render()
    (case,) = corpus.cases
    return case


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A cell's server. folder: its own, whose name no result may tell."""

    built: Built
    server: CellServer
    folder: Path

    def probe(
        self,
        file: Path,
        path: str = "",
        *,
        isolation: str = "fork",
        deadline_s: float = PATIENCE_S,
        memory_bytes: int = 4 * 2**30,
    ) -> dict[str, Any]:
        """One probe. path: the case's first when it is not named. A deadline of the case's own counts."""
        case = read_case(file)
        seen = self.server.probe(
            {
                "case": case.id,
                "file": str(file),
                "kind": case.kind,
                "path": path or case.paths[0],
                "device": "cpu",
                "deadline_s": case.deadline_s or deadline_s,
                "memory_bytes": memory_bytes,
                "isolation": isolation,
            }
        )
        found = machine_in(seen, self.folder)
        assert not found, f"{case.id}: the result names this machine: {found}"
        return seen


def machine_in(value: object, folder: Path) -> list[str]:
    """Every text of a result that names a folder or an address of this machine."""
    names = {str(Path.home()), str(folder), tempfile.gettempdir() + "/compile-matrix"}
    pattern = re.compile("|".join([*map(re.escape, names), r"\b0x[0-9a-fA-F]{6,}\b"]))
    return [text[:2000] for text in _texts(value) if pattern.search(text)]


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


# ------------------------------------------------------------------------------- processes


def is_alive(pid: int) -> bool:
    """Whether a process runs. A dead one that nobody has reaped does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")


def wait_until(condition: Callable[[], bool], limit_s: float = PATIENCE_S) -> bool:
    """Whether it comes true before patience ends."""
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def processes_with(mark: str) -> list[int]:
    """Every process but this one whose environment, arguments or folder name `mark`."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and int(place.name) != os.getpid():
            try:
                texts = [(place / name).read_bytes() for name in ("environ", "cmdline")]
                texts.append(os.fsencode((place / "cwd").readlink()))
            except OSError:  # it has ended since
                continue
            if any(mark.encode() in text for text in texts) and is_alive(int(place.name)):
                found.append(int(place.name))
    return found


@cache
def may_mount() -> bool:
    """Whether a file system can be mounted here: root can, unless the system forbids it to all."""
    with tempfile.TemporaryDirectory() as place:
        mounted = subprocess.run(
            ("mount", "-t", "tmpfs", "tmpfs", place), capture_output=True, check=False
        )
        if mounted.returncode == 0:
            subprocess.run(("umount", place), check=True)
        return mounted.returncode == 0


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own, mounted at `place`. options: as `mount -o` takes them."""
    place.mkdir(parents=True)
    subprocess.run(("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)), check=True)
    try:
        yield place
    finally:
        subprocess.run(("umount", "--lazy", str(place)), check=True)


# -------------------------------------------------------------------- the harness as a program


def harness_environment(mark: Path, *, measured: bool = True) -> dict[str, str]:
    """Variables for a harness whose children are found by `mark`, its temporary folder.

    measured: whether coverage may follow it. Not one that is going to be killed, or that has no room:
    its file of data would be torn.
    """
    mark.mkdir(parents=True, exist_ok=True)
    above = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "TMPDIR": str(mark), "NO_COLOR": "1", "PYTHONPATH": above}
    env.pop("GITHUB_ACTIONS", None)
    return {name: text for name, text in env.items() if measured or not name.startswith("COV")}


def start_harness(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path, **options: Any
) -> subprocess.Popen[str]:
    """`python -m harness …`, the leader of its own group, as a terminal's job is."""
    argv = [sys.executable, "-m", "harness", *arguments]
    return subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )


def run_harness(arguments: Sequence[str], env: Mapping[str, str], cwd: Path) -> Ended:
    """Runs it to its end."""
    child = start_harness(arguments, env, cwd)
    return Ended.of(child)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a harness ended. status: negative for a signal."""

    status: int
    stdout: str
    stderr: str

    @classmethod
    def of(cls, child: subprocess.Popen[str]) -> Ended:
        try:
            stdout, stderr = child.communicate(timeout=10 * PATIENCE_S)
        finally:
            child.kill()
        return cls(status=child.returncode, stdout=stdout, stderr=stderr)


def observations(journal: Path) -> list[dict[str, Any]]:
    """The observations that stand whole in a journal so far."""
    try:
        lines = journal.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:  # torn, where a harness was killed
            continue
    return [record for record in records if record["record"] == "observation"]
