"""A small world to run in without torch: cells, cases, a store that builds nothing, and fake servers."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from packaging.specifiers import SpecifierSet

from harness.baseline import Baseline
from harness.corpus import Case
from harness.environments import Environment, EnvironmentFailed, EnvironmentStore
from harness.interpreters import Interpreter, InterpreterFetcher
from harness.journal import Journal, read_records, reusable
from harness.matrix import Cell, Device, Era, Indexes, Limits, Matrix, Python, Release
from harness.plan import CellPlan, Plan, make_plan
from harness.recorder import Recorder
from harness.results import CellRecord, Expectation, NotRunReason, Observation
from harness.runner import Means, Runner

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FAKE_SERVER = Path(__file__).parents[1] / "fixtures" / "worker" / "fake_server.py"
PLATFORM = "linux-x86_64"
PYTHONS = ("3.10", "3.12", "3.15")
TORCHES = ("2.3.1", "2.4.1", "2.5.1")


def make_matrix(**changes: Any) -> Matrix:
    """Three Pythons, of which 3.15 is only used where it is found, and three releases for 3.10 and 3.12."""
    releases = tuple(
        Release(
            version=version,
            series=version.rpartition(".")[0],
            is_default=True,
            day="2024-09-04",
            as_of="2024-10-10T00:00:00Z",
            cuda="12.1",
            cuda_platforms=(PLATFORM,),
            wheels={PLATFORM: ("3.10", "3.12")},
        )
        for version in TORCHES
    )
    settings: dict[str, Any] = {
        "pythons": tuple(Python(version=p, only_if_found=p == "3.15") for p in PYTHONS),
        "platforms": (PLATFORM,),
        "releases": releases,
        "indexes": Indexes(default=None, cpu=None),
        "limits": Limits(deadlines_s={"default": 30.0, "inductor": 60.0}, memory_bytes=10**9),
        "requirements_by_era": {Era.RELEASE: ()},
        "profiles": {"quick": ("3.12-2.4",)},
        "file": Path("matrix.yaml"),
    }
    return Matrix(**{**settings, **changes})


def make_cell(
    python: str = "3.12", series: str = "2.4", device: Device = Device.CPU, order: int = 0
) -> Cell:
    torch = next(version for version in TORCHES if version.startswith(series))
    return Cell(
        python=python,
        torch=torch,
        device=device,
        era=Era.RELEASE,
        platform=PLATFORM,
        id=f"{python}-{series}{'-cuda' if device is Device.CUDA else ''}",
        order=order or PYTHONS.index(python) * 10 + TORCHES.index(torch),
    )


def make_case(case_id: str = "gate/decorator", **changes: Any) -> Case:
    settings: dict[str, Any] = {
        "id": case_id,
        "title": f"Does {case_id} compile?",
        "category": case_id.rpartition("/")[0],
        "kind": "run",
        "paths": ("dynamo",),
        "python": SpecifierSet(),
        "torch": SpecifierSet(),
        "devices": ("cpu", "cuda"),
        "isolation": "fork",
        "deadline_s": None,
        "source": (),
        "file": Path(f"cases/{case_id}.py"),
        "text": f"# {case_id}\n",
        "digest": f"digest-of-{case_id}",
    }
    return Case(**{**settings, **changes})


def make_interpreter(minor: str = "3.12") -> Interpreter:
    path = Path(sys.executable)
    return Interpreter(
        path=path,
        real_path=path,
        version=f"{minor}.1",
        implementation="cpython",
        free_threaded=False,
        has_headers=True,
        source="PATH",
    )


@dataclass(slots=True)
class FakePython:
    """An executable that pretends to be a cell's Python (tests/fixtures/worker/fake_server.py)."""

    folder: Path
    script: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / "python"

    def install(self) -> Path:
        """Writes it and what it is to do; returns the executable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = FAKE_SERVER.read_text(encoding="utf-8")
        self.path.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)
        (self.folder / "script.json").write_text(json.dumps(self.script), encoding="utf-8")
        return self.path

    def does(self, probe: str, *attempts: dict[str, Any]) -> None:
        """What each attempt at a probe, "case path", does in turn; then it answers `full`."""
        self.script.setdefault("probes", {})[probe] = list(attempts)

    @property
    def events(self) -> list[dict[str, Any]]:
        file = self.folder / "events.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def looks(self, probe: str = "") -> list[str]:
        """The isolation of each attempt that was begun, at one probe or at all."""
        return [
            event["isolation"]
            for event in self.events
            if event["event"] == "begin" and probe in ("", f"{event['case']} {event['path']}")
        ]

    @property
    def starts(self) -> list[int]:
        return [event["pid"] for event in self.events if event["event"] == "start"]


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


@dataclass(slots=True)
class FakeStore:
    """Knows environments by cell id. found: those that `find` gives. failing: what `prepare` raises."""

    environments: dict[str, Environment] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    failing: dict[str, EnvironmentFailed] = field(default_factory=dict)
    prepared: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    is_closed: bool = False
    at_once: int = 0
    most_at_once: int = 0
    pause_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, cell: Cell, _matrix: Matrix, _interpreter: Interpreter) -> Environment | None:
        return self.environments[cell.id] if cell.id in self.found else None

    def prepare(self, cell: Cell, _matrix: Matrix, _interpreter: Interpreter) -> Environment:
        with self.lock:
            self.prepared.append(cell.id)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        threading.Event().wait(self.pause_s)
        with self.lock:
            self.at_once -= 1
        if cell.id in self.failing:
            raise self.failing[cell.id]
        return self.environments[cell.id]

    def release(self, environment: Environment) -> None:
        self.released.append(environment.built_for)

    def close(self) -> None:
        self.is_closed = True


@dataclass(slots=True)
class Heard:
    """A progress display that only remembers."""

    settled_probes: list[tuple[str, str, str, bool]] = field(default_factory=list)
    skipped_probes: int = 0
    done: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)

    def settled(self, found: Observation, *, is_known: bool) -> None:
        self.settled_probes.append((found.cell, found.case, found.path, is_known))

    def skipped(self, count: int) -> None:
        self.skipped_probes += count

    def note(self, cell: str, doing: str) -> None:
        self.notes.append((cell, doing))

    def cell_done(self, cell: str) -> None:
        self.done.append(cell)

    def say(self, line: str) -> None:
        raise AssertionError(line)

    def close(self) -> None:
        raise AssertionError


class Fetcher:
    """Has no interpreter to give, and says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, minor: str) -> Interpreter | str:
        self.asked.append(minor)
        return f"error: no download for {minor}"


@dataclass(slots=True)
class World:
    """One run after another over one journal, all in one temporary folder."""

    root: Path
    cells: Sequence[Cell] = (make_cell(),)
    cases: Sequence[Case] = (make_case(),)
    matrix: Matrix = field(default_factory=make_matrix)
    store: FakeStore = field(default_factory=FakeStore)
    pythons: dict[str, FakePython] = field(default_factory=dict)
    progress: Heard = field(default_factory=Heard)
    fetcher: Fetcher = field(default_factory=Fetcher)
    baseline: Baseline = field(default_factory=Baseline)
    stop: threading.Event = field(default_factory=threading.Event)
    means: dict[str, Any] = field(default_factory=dict)
    isolation: Literal["fork", "process", "auto"] = "auto"

    def __post_init__(self) -> None:
        for cell in self.cells:
            self.pythons[cell.id] = FakePython(self.root / cell.id / "bin")
            self.store.environments[cell.id] = self.environment(cell)

    def environment(self, cell: Cell) -> Environment:
        return Environment(
            id=f"environment-of-{cell.id}",
            python=self.pythons[cell.id].path,
            packages={"torch": f"{cell.torch}+cpu"},
            lock_sha256="5f" * 32,
            index="pytorch-cpu",
            size_bytes=1,
            root=self.root / cell.id,
            python_version=f"{cell.python}.7",
            built_for=cell.id,
        )

    @property
    def python(self) -> FakePython:
        """That of the only cell."""
        (python,) = self.pythons.values()
        return python

    @property
    def plan(self) -> Plan:
        paths = tuple(dict.fromkeys(path for case in self.cases for path in case.paths))
        return make_plan(
            self.cells, self.cases, paths, self.matrix, isolation=self.isolation, can_fork=True
        )

    @property
    def journal_file(self) -> Path:
        return self.root / "journal.jsonl"

    def expect(self, found: Mapping[str, Expectation], cell: str = "") -> None:
        """Makes the baseline. found: "case path" to what is expected in the cell."""
        cases: dict[str, dict[str, dict[str, Expectation]]] = {}
        for probe, expectation in found.items():
            case, path = probe.split()
            cases.setdefault(case, {}).setdefault(path, {})[cell or self.cells[0].id] = expectation
        self.baseline = Baseline(cases=cases)

    def runner(self, journal: Journal) -> Runner:
        records = read_records(self.journal_file).records
        for python in self.pythons.values():
            python.install()
        settings: dict[str, Any] = {
            "matrix": self.matrix,
            "store": cast("EnvironmentStore", self.store),
            "interpreters": {minor: make_interpreter(minor) for minor in ("3.10", "3.12")},
            "fetcher": cast("InterpreterFetcher", self.fetcher),
            "env": {"PATH": os.environ.get("PATH", ""), "HOME": str(self.root)},
            "cores": 2,
            "live_cells": 2,
            "memory_bytes": 10**9,
            "has_cuda": False,
            "machine": "m1",
            "adopted": {},
            "record_not_run": "",
            "utc": lambda: "2026-12-01T12:00:00.000Z",
        }
        means = Means(**{**settings, **self.means})
        recorder = Recorder(journal, records, self.progress)
        return Runner(self.plan, means, recorder, reusable(records), self.baseline, self.stop)

    def run(self) -> None:
        with Journal.open(self.journal_file) as journal:
            self.runner(journal).run()

    @property
    def observations(self) -> dict[str, Observation]:
        """The last of each probe, by "case path" where there is one cell, else by "cell case path"."""
        records = read_records(self.journal_file).records
        prefix = len(self.cells) > 1
        return {
            f"{f'{o.cell} ' if prefix else ''}{o.case} {o.path}": o
            for o in records
            if isinstance(o, Observation)
        }

    @property
    def cell_records(self) -> dict[str, CellRecord]:
        records = read_records(self.journal_file).records
        return {record.id: record for record in records if isinstance(record, CellRecord)}

    @property
    def verdicts(self) -> dict[str, str]:
        return {probe: found.verdict.value for probe, found in self.observations.items()}


def most_at_once(events: Iterable[dict[str, Any]]) -> int:
    """The largest number of probes that were between their begin and their end."""
    now = most = 0
    for event in sorted(events, key=lambda event: event["at"]):
        now += {"begin": 1, "end": -1}.get(event["event"], 0)
        most = max(most, now)
    return most


def failed(reason: NotRunReason = NotRunReason.ENVIRONMENT_FAILED) -> EnvironmentFailed:
    return EnvironmentFailed(reason, "uv could not install it", "error: no such wheel")


__all__ = [
    "CellPlan",
    "FakePython",
    "FakeStore",
    "Heard",
    "World",
    "failed",
    "has_ended",
    "make_case",
    "make_cell",
    "make_interpreter",
    "make_matrix",
    "most_at_once",
]
