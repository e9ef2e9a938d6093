"""The structure that STYLE and the design ask for, where a linter cannot say it."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
HARNESS = ROOT / "harness"
SOURCES = sorted(HARNESS.rglob("*.py"))
WORKER = sorted((HARNESS / "worker").rglob("*.py"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PURE_ROOMS = (
    "matrix",
    "matrix_file",
    "corpus",
    "selection",
    "results",
    "baseline",
    "findings",
    "diagnosis",
    "plan",
)
"""Rooms that take the time, the environment and the machine's facts as arguments."""

UV_ROOMS = ("environments", "interpreters")
"""Rooms that may know uv."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), name_of(path))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every module that a file imports, wherever in it the import stands."""
    package = path.parent.relative_to(ROOT).parts
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            yield node.lineno, module
            if node.level:
                for alias in node.names:
                    yield node.lineno, f"{module}.{alias.name}"


def room_of(path: Path) -> str:
    """The room of the harness that a file belongs to: its module, or its package's folder."""
    first = path.relative_to(HARNESS).parts[0]
    return first.removesuffix(".py")


def dotted(node: ast.expr) -> str:
    """`os.environ` for the attribute access that spells it, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def test_the_globs_find_what_they_are_for() -> None:
    assert len(SOURCES) > 10
    assert len(WORKER) > 3
    assert {path.name for path in WORKFLOWS} >= {"ci.yml", "matrix.yml"}


@pytest.mark.parametrize("path", WORKER, ids=name_of)
def test_the_worker_imports_only_the_standard_library_torch_and_itself(path: Path) -> None:
    foreign = [
        f"{name_of(path)}:{line}: {module}"
        for line, module in imports_of(path)
        if module.partition(".")[0] not in sys.stdlib_module_names | {"torch", "harness"}
        or (module.startswith("harness") and not f"{module}.".startswith("harness.worker."))
    ]
    assert foreign == []


def test_only_two_rooms_know_uv() -> None:
    literals = [
        f"{name_of(path)}:{node.lineno}"
        for path in SOURCES
        if room_of(path) not in UV_ROOMS
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and node.value in ("uv", "uvx", "uv.exe")
    ]
    imports = [
        f"{name_of(path)}:{line}"
        for path in SOURCES
        if room_of(path) not in UV_ROOMS
        for line, module in imports_of(path)
        if module == "uv"
    ]
    assert literals + imports == []


def test_only_process_and_worker_start_processes() -> None:
    starters = {"subprocess", "multiprocessing", "pty"}
    strays = [
        f"{name_of(path)}:{line}: {module}"
        for path in SOURCES
        if room_of(path) not in ("process", "worker")
        for line, module in imports_of(path)
        if module.partition(".")[0] in starters
    ]
    assert strays == []


def test_pure_rooms_read_no_clock_no_environment_and_no_working_directory() -> None:
    impure = {
        "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
        "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today",
        "os.environ", "os.environb", "os.getenv", "os.getcwd", "os.uname",
        "Path.cwd", "Path.home", "pathlib.Path.cwd", "sys.platform", "sys.argv", "sys.executable",
        "sys.version_info",
    }  # fmt: skip
    reads = [
        f"{name_of(path)}:{node.lineno}: {dotted(node)}"
        for path in SOURCES
        if room_of(path) in (*PURE_ROOMS, "reports")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and dotted(node) in impure
    ]
    assert reads == []


def test_the_harness_never_depends_on_torch() -> None:
    names = {Requirement(text).name for text in PYPROJECT["project"]["dependencies"]}
    assert "torch" not in names
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    assert "torch" not in {package["name"] for package in lock["package"]}


def test_the_lock_names_pypi_alone() -> None:
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    hosts = set(re.findall(r"https?://[^/\"]+", lock))
    assert hosts == {"https://pypi.org", "https://files.pythonhosted.org"}


def test_imports_point_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlinter import cli

    monkeypatch.chdir(ROOT)
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        status = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == cli.EXIT_STATUS_SUCCESS, told.getvalue()


def sessions() -> list[ast.FunctionDef]:
    return [
        node
        for node in tree_of(ROOT / "noxfile.py").body
        if isinstance(node, ast.FunctionDef)
        and any("nox.session" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]


def test_noxfile_has_the_sessions_that_the_documents_name() -> None:
    assert {session.name for session in sessions()} >= {
        "matrix", "cell", "report", "tests", "unit", "lint", "fix", "docs", "snapshots",
    }  # fmt: skip


@pytest.mark.parametrize("session", sessions(), ids=lambda session: session.name)
def test_every_session_explains_itself_in_one_line(session: ast.FunctionDef) -> None:
    told = ast.get_docstring(session) or ""
    assert re.fullmatch(r"[A-Z][^\n]{20,99}\.", told), f"nox -l shows {told!r} for {session.name}"


def workflow_steps(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    for name, job in workflow["jobs"].items():
        for step in job.get("steps", ()):
            yield name, step


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflows_pin_actions_by_commit_and_say_which_release_it_is(path: Path) -> None:
    used = [
        line.strip() for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line
    ]
    assert used
    pin = re.compile(r"(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not pin.fullmatch(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflows_state_permissions_time_limits_and_keep_no_credentials(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for name, job in workflow["jobs"].items():
        assert "permissions" in job, name
        assert "timeout-minutes" in job, name
    for name, step in workflow_steps(path):
        if str(step.get("uses", "")).startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}, name
        assert "${{" not in str(step.get("run", "")), f"{name}: an expression inside a script"


def test_one_command_makes_the_tests_run_everywhere() -> None:
    command = (
        "python3 -m venv .venv && .venv/bin/python -m pip install -e . && .venv/bin/nox -s tests"
    )
    for name in ("README.md", "CONTRIBUTING.md", ".ci/run"):
        assert command in (ROOT / name).read_text(encoding="utf-8"), name
    assert ".ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def asked_of_the_harness() -> list[tuple[str, str]]:
    """(command, option) for every `compile-matrix COMMAND ... --option` in the workflows' scripts."""
    found = []
    for path in WORKFLOWS:
        for _, step in workflow_steps(path):
            script = re.sub(r"\\\n\s*", "", str(step.get("run", "")))
            shared = re.findall(r"--[a-z-]+", " ".join(re.findall(r"select\+?=\(.*?\)", script)))
            for command, rest in re.findall(r"compile-matrix (\w+)(.*)", script):
                used = shared if "select[@]" in rest else []
                found += [(command, option) for option in (*used, *re.findall(r"--[a-z-]+", rest))]
    return sorted(set(found))


@pytest.mark.parametrize(("command", "option"), asked_of_the_harness(), ids="-".join)
def test_workflows_ask_only_what_the_command_line_knows(
    command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from harness.cli import main

    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert re.search(rf"{option}\b", capsys.readouterr().out)


def test_workflows_plan_measure_and_merge() -> None:
    assert {command for command, _ in asked_of_the_harness()} == {"plan", "run", "merge"}
