"""A uv that installs tiny packages from nowhere, and the small world that the store is tried in."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness.environments import EnvironmentStore
from harness.interpreters import Interpreter
from harness.matrix import Cell, Device, Era, Indexes, Limits, Matrix, Release
from harness.process import Finished

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

NOON = datetime(2026, 12, 1, 12, tzinfo=timezone.utc)
CPU_INDEX = "http://127.0.0.1:9/whl/cpu"
COMMANDS = ("compile", "venv", "sync", "compileall", "clean")


@dataclass(frozen=True, slots=True)
class Call:
    """One command of uv. argv: without uv itself."""

    command: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path

    def option(self, name: str) -> str:
        return self.argv[self.argv.index(name) + 1]

    def file(self, end: str) -> Path:
        return Path(next(word for word in self.argv if word.endswith(end)))


@dataclass(slots=True)
class FakeUv:
    """The fake (which also stands for the environments' Pythons), its calls, and what it is to do.

    packages: what everything is resolved to. failures: by command, what its first calls say on stderr
    before they fail, one entry a call. pauses: by command, seconds that it takes. size: bytes that a lock
    says each wheel has. lines: length of each package's one module.
    """

    packages: dict[str, str] = field(default_factory=lambda: {"numpy": "1.26.4", "torch": "2.4.1"})
    failures: dict[str, list[str]] = field(default_factory=dict)
    pauses: dict[str, float] = field(default_factory=dict)
    size: int = 1000
    lines: int = 1000
    calls: list[Call] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        return [call.command for call in self.calls]

    def run(
        self,
        argv: tuple[str, ...],
        *,
        deadline_s: float,
        env: Mapping[str, str],
        cwd: Path,
        cancel: threading.Event,
    ) -> Finished:
        """In the place of `process.run`."""
        assert deadline_s > 0
        assert cwd.is_dir()
        command = next(word for word in argv[1:] if word in COMMANDS)
        call = Call(command=command, argv=argv[1:], env=dict(env), cwd=cwd)
        self.calls.append(call)
        cancelled = cancel.wait(self.pauses.get(command, 0.0))
        failures = self.failures.get(command)
        told = failures.pop(0) if failures else self._answer(call)
        status = 2 if told or cancelled else 0
        return Finished(status=status, stdout_tail="", stderr_tail=told, cancelled=cancelled)

    def _answer(self, call: Call) -> str:
        match call.command:
            case "compile":
                self._compile(call)
            case "venv":
                self._venv(call)
            case "sync":
                return self._sync(call)
            case "clean":
                self._clean(call)
            case "compileall":
                self._compileall(call)
            case other:
                return f"error: unrecognized subcommand '{other}'"
        return ""

    def _compile(self, call: Call) -> None:
        is_cpu = "pytorch-cpu" in call.file("pyproject.toml").read_text(encoding="utf-8")
        lines = ['lock-version = "1.0"', 'created-by = "uv"']
        for name, plain in sorted(self.packages.items()):
            version = f"{plain}+cpu" if is_cpu and name == "torch" else plain
            url = f"https://files.test/{quote(f'{name}-{version}')}-py3-none-any.whl"
            wheel = f'{{ url = "{url}", size = {self.size}, hashes = {{ sha256 = "00" }} }}'
            lines += ["", "[[packages]]", f'name = "{name}"', f'version = "{version}"']
            lines += [f"wheels = [{wheel}]"]
        text = "\n".join((*lines, ""))
        Path(call.option("--output-file")).write_text(text, encoding="utf-8")

    def _venv(self, call: Call) -> None:
        root = Path(next(word for word in call.argv if "/.tmp-" in word))
        (root / "lib/python3.12/site-packages").mkdir(parents=True)
        (root / "bin").mkdir()
        (root / "bin/python").symlink_to(call.option("--python"))

    def _sync(self, call: Call) -> str:
        site = Path(call.option("--python")).parents[1] / "lib/python3.12/site-packages"
        lock = call.file(".toml").read_text(encoding="utf-8")
        for name, version in re.findall(r'name = "(.+)"\nversion = "(.+)"', lock):
            if (site / f"{name}-{version}.dist-info").exists():
                continue
            wheel = Path(call.option("--cache-dir")) / "archive-v0" / f"{name}-{version}"
            if not wheel.exists():
                if "--offline" in call.argv:
                    return (
                        f"error: Failed to download `{name}=={version}`\n  cause: Network "
                        "connectivity is disabled, but the requested data wasn't found\n"
                    )
                self._download(wheel, name, version)
            for source in wheel.rglob("*"):
                if source.is_file():
                    target = site / source.relative_to(wheel)
                    target.parent.mkdir(exist_ok=True)
                    os.link(source, target)
        return ""

    def _compileall(self, call: Call) -> None:
        for module in call.cwd.glob("*/__init__.py"):
            (module.parent / "__pycache__").mkdir()
            (module.parent / "__pycache__/x.pyc").write_text("bytecode")

    def _download(self, wheel: Path, name: str, version: str) -> None:
        (wheel / name).mkdir(parents=True)
        (wheel / name / "__init__.py").write_text(f"# {name}\n" * self.lines)
        info = wheel / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (info / "WHEEL").write_text("Tag: py3-none-any\n")
        (info / "RECORD").write_text(f"{name}/__init__.py,,\n{info.name}/RECORD,,\n")

    def _clean(self, call: Call) -> None:
        for wheel in (Path(call.option("--cache-dir")) / "archive-v0").iterdir():
            if wheel.name.rpartition("-")[0] in call.argv:
                shutil.rmtree(wheel)


def cell(
    torch: str = "2.4.1",
    *,
    device: Device = Device.CPU,
    era: Era = Era.RELEASE,
    platform: str = "linux-x86_64",
) -> Cell:
    suffix = ("-cuda" if device is Device.CUDA else "") + ("-today" if era is Era.TODAY else "")
    name = f"3.12-{torch}{suffix}"
    return Cell(
        python="3.12", torch=torch, device=device, era=era, platform=platform, id=name, order=0
    )


def matrix(
    *,
    cpu: str | None = None,
    default: str | None = None,
    requirements: tuple[str, ...] = ("numpy",),
) -> Matrix:
    releases = tuple(
        Release(
            version=version,
            series=version.rpartition(".")[0],
            is_default=True,
            day="2024-09-04",
            as_of=f"2024-1{number}-01T00:00:00Z",
            cuda="12.1",
            cuda_platforms=("linux-x86_64",),
            wheels={"linux-x86_64": ("3.12",)},
        )
        for number, version in enumerate(("2.4.1", "2.5.1", "2.6.0"))
    )
    return Matrix(
        pythons=(),
        platforms=("linux-x86_64",),
        releases=releases,
        indexes=Indexes(default=default, cpu=cpu),
        limits=Limits(deadlines_s={"default": 60.0}, memory_bytes=10**9),
        requirements_by_era={Era.RELEASE: requirements, Era.TODAY: requirements},
        profiles={},
        file=Path("matrix.yaml"),
    )


def interpreter(version: str = "3.12.1") -> Interpreter:
    path = Path(sys.executable)
    return Interpreter(
        path=path,
        real_path=path.resolve(),
        version=version,
        implementation="cpython",
        free_threaded=False,
        has_headers=True,
        source="PATH",
    )


@dataclass(slots=True)
class World:
    """A root, its fake uv, and the lines that stores told of."""

    root: Path
    uv: FakeUv
    env: dict[str, str]
    told: list[str] = field(default_factory=list)

    def store(self, *, env: Mapping[str, str] | None = None, **options: Any) -> EnvironmentStore:
        settings: dict[str, Any] = {"now": NOON, "on_event": self.told.append, **options}
        return EnvironmentStore(self.root, env={**self.env, **(env or {})}, **settings)

    @property
    def standing(self) -> list[str]:
        folder = self.root / "environments"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    @property
    def cached(self) -> list[str]:
        folder = self.root / "uv/archive-v0"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []
