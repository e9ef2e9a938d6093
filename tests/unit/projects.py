"""A project in a temporary folder, and a machine that is pretended: what the command line is tried on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import cli
from harness.environments import Environment, StandingEnvironment, StoreSize
from harness.interpreters import Interpreter
from tests.unit.worlds import FakePython, FakeStore, make_interpreter

if TYPE_CHECKING:
    import pytest

    from harness.matrix import Cell, Matrix

MATRIX = """\
schema: 1
pythons: {always: ["3.10", "3.12"], only_if_found: ["3.14"]}
platforms: {linux-x86_64: {cuda_since: "2.4"}}
torch:
  "2.3":
    default: "2.3.1"
    patches: {"2.3.1": "2024-06-05"}
    as_of: "2024-07-15T00:00:00Z"
    cuda: "12.1"
    pythons: ["3.10", "3.12"]
  "2.4":
    default: "2.4.1"
    patches: {"2.4.0": "2024-07-24", "2.4.1": "2024-09-04"}
    as_of: "2024-10-10T00:00:00Z"
    cuda: "12.1"
    pythons: ["3.10", "3.12"]
  "2.10":
    default: "2.10.0"
    patches: {"2.10.0": "2026-02-10"}
    as_of: "2026-03-20T00:00:00Z"
    cuda: "12.8"
    pythons: ["3.10", "3.12", "3.14"]
profiles:
  quick: [3.12-2.4]
  full: ["*"]
  gpu: ["3.12-2.4-cuda"]
"""

CASE = '''\
"""Does {name} compile?"""
# /// case
# paths = {paths}
# {more}
# ///
import torch


def run(x):
    return x


def inputs():
    return (torch.ones(3),)
'''


class ProjectStore(FakeStore):
    """Builds an environment for whatever cell it is asked for, with a fake server as its Python."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.root = folder
        self.options: dict[str, Any] = {}
        self.scripts: dict[str, dict[str, Any]] = {}
        self.adopted: list[Path] = []
        self.stands: tuple[StandingEnvironment, ...] = ()

    def python(self, cell_id: str) -> FakePython:
        return FakePython(self.root / cell_id / "bin", self.scripts.setdefault(cell_id, {}))

    def make(self, cell_id: str, python: str, torch: str) -> Environment:
        return Environment(
            id=f"environment-of-{cell_id}",
            python=self.python(cell_id).install(),
            packages={"torch": f"{torch}+cpu", "numpy": "1.26.4"},
            lock_sha256="5f" * 32,
            index="pytorch-cpu",
            size_bytes=2_500_000_000,
            root=self.root / cell_id,
            python_version=f"{python}.7",
            built_for=cell_id,
        )

    def find(self, cell: Cell, matrix: Matrix, interpreter: Interpreter) -> Environment | None:
        if cell.id in self.environments:
            self.environments[cell.id] = self.make(cell.id, cell.python, cell.torch)
            return self.environments[cell.id]
        return super().find(cell, matrix, interpreter)

    def prepare(self, cell: Cell, matrix: Matrix, interpreter: Interpreter) -> Environment:
        self.environments[cell.id] = self.make(cell.id, cell.python, cell.torch)
        return super().prepare(cell, matrix, interpreter)

    def adopt(self, python: Path) -> Environment:
        self.adopted.append(python)
        return self.make("adopted", "3.12", "2.4.1")

    def standing(self) -> tuple[StandingEnvironment, ...]:
        return self.stands

    def size(self) -> StoreSize:
        return StoreSize(
            held_bytes=5_000_000_000,
            cache_bytes=1_000_000_000,
            free_bytes=80_000_000_000,
            budget_bytes=40_000_000_000,
            is_cache_ours=True,
            is_linked=True,
        )


@dataclass(slots=True)
class Project:
    """A folder with matrix.yaml and cases/; `call` is the command line, as if typed in that folder."""

    root: Path
    store: ProjectStore
    interpreters: dict[str, Interpreter] = field(default_factory=dict)
    has_cuda: bool = False

    def write_case(self, case_id: str, *, paths: str = '["dynamo"]', more: str = "") -> Path:
        file = self.root / "cases" / f"{case_id}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CASE.format(name=case_id, paths=paths, more=more), encoding="utf-8")
        return file

    def does(self, cell: str, probe: str, *attempts: dict[str, Any]) -> None:
        """What the cell's server does with each attempt at a probe, "case path"."""
        self.store.scripts.setdefault(cell, {}).setdefault("probes", {})[probe] = list(attempts)

    @property
    def journal(self) -> Path:
        return self.root / "reports" / "journal.jsonl"

    def call(self, *words: str) -> int:
        """The exit status, also where argparse leaves by itself."""
        try:
            return cli.main(words)
        except SystemExit as leaving:
            return int(leaving.code or 0)


def make_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project, made the current folder, with Python 3.10 and 3.12 on the machine."""
    project = Project(root=folder / "project", store=ProjectStore(folder / "store"))
    project.root.mkdir()
    (project.root / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    project.write_case("gate/decorator", paths='["dynamo", "inductor"]')
    project.write_case("gate/module")
    project.write_case("bytecode/walrus")
    for minor in ("3.10", "3.12"):
        project.interpreters[minor] = make_interpreter(minor)

    def find(pythons: list[str], *, env: dict[str, str]) -> dict[str, Interpreter]:
        assert "PATH" in env
        return {minor: found for minor, found in project.interpreters.items() if minor in pythons}

    def open_store(root: Path, **options: Any) -> ProjectStore:
        project.store.options = {"root": root, **options}
        return project.store

    monkeypatch.setattr("os.fsync", lambda _descriptor: None)  # no test cuts the power
    for name in ("NO_COLOR", "GITHUB_ACTIONS", "COMPILE_MATRIX_CACHE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(project.root)
    monkeypatch.setattr("harness.commands.project.find_interpreters", find)
    monkeypatch.setattr("harness.commands.doctor.find_interpreters", find)
    monkeypatch.setattr("harness.commands.run.EnvironmentStore", open_store)
    monkeypatch.setattr("harness.machine.current_platform", lambda: "linux-x86_64")
    monkeypatch.setattr("harness.commands.project.current_platform", lambda: "linux-x86_64")
    monkeypatch.setattr("harness.machine.compiler_line", lambda _env: "g++ (fake) 12.2.0")
    monkeypatch.setattr("harness.machine.has_cuda_device", lambda: project.has_cuda)
    monkeypatch.setattr("harness.machine.cores", lambda: 2)
    monkeypatch.setattr("harness.machine.live_cells", lambda _cores: 2)
    monkeypatch.setattr("harness.machine.can_fork", lambda: True)
    return project
