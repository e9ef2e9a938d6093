"""The front door: `nox -l` says what there is; what is done is done by the harness and the tools.

A session fails when its command fails, whatever its exit status: nox itself exits with 1 (130 when it is
interrupted). `python -m harness run` gives the harness's own status, 0 to 4, which README explains.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import nox
import nox.manifest

nox.needs_version = ">=2025.11.12"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["tests"]

ROOT = Path(__file__).parent

# Rooms that are functions of what they are given: tests reach all of them.
PURE = "baseline.py corpus/* findings.py matrix/* matrix_file/* reports/* results.py selection.py"

# nox compares the ids of sessions as Python expressions, where 2.1 is 2.10: compare them as they are written.
nox.manifest._normalize_arg = str  # type: ignore[assignment]

# SIGTERM would end nox alone and leave its child running; as an interrupt, nox ends the child too.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def cells() -> tuple[list[str], str]:
    """Ids of the cells that `cell` can run, or one placeholder and the sentence why they are not known."""
    try:
        from harness.errors import HarnessError
        from harness.machine import current_platform
        from harness.matrix import load_matrix
    except ImportError as error:
        return ["unknown"], (
            f"nox's Python cannot import the harness ({error}): "
            f"run `{sys.executable} -m pip install -e .` first"
        )
    try:
        matrix = load_matrix(ROOT / "matrix.yaml")
        every = matrix.cells(["*"], platform=current_platform(), found_pythons=frozenset())
        return [cell.id for cell in every if matrix.why_impossible(cell) is None], ""
    except HarnessError as error:
        return ["unknown"], error.render().removeprefix("error: ")


CELLS, WHY_NO_CELLS = cells()


def harness(session: nox.Session, *args: str) -> None:
    """Run the harness in nox's own Python; it has ten seconds to end its children when interrupted."""
    if WHY_NO_CELLS:
        session.error(WHY_NO_CELLS)
    session.run(
        sys.executable,
        "-m",
        "harness",
        *args,
        external=True,
        stderr=None,
        interrupt_timeout=2,
        terminate_timeout=10,
    )


def sync(session: nox.Session) -> None:
    """Bring the session's environment to what uv.lock says, with the harness itself as it stands here."""
    if session.venv_backend == "uv":
        place = session.virtualenv.location
        session.run_install(
            "uv",
            "sync",
            "--locked",
            "--quiet",
            env={"UV_PROJECT_ENVIRONMENT": place, "UV_PYTHON": place},
        )
    else:
        pyproject = nox.project.load_toml(ROOT / "pyproject.toml")
        session.install("-e", ".", *nox.project.dependency_groups(pyproject, "dev"))


@nox.session(venv_backend="none", default=False)
def matrix(session: nox.Session) -> None:
    """Measure the profile `quick`, or what is asked: `nox -s matrix -- --profile full`."""
    harness(session, "run", *session.posargs)


@nox.session(venv_backend="none", default=False)
def report(session: nox.Session) -> None:
    """Write the reports again from what was measured, without measuring anything."""
    harness(session, "report", *session.posargs)


@nox.session(requires=["lint"])
def tests(session: nox.Session) -> None:
    """Check everything: lint, then the unit tests and those that need a real torch in a real cell."""
    sync(session)
    session.run("pytest", "-m", "not gpu", "--cov", *session.posargs)
    if not session.posargs:
        # Not 100: the way out of an exhaustive `match` is a branch that nothing can take.
        pure = ",".join(f"harness/{room}" for room in PURE.split())
        session.run("coverage", "report", f"--include={pure}", "--fail-under=99")


@nox.session(default=False)
def unit(session: nox.Session) -> None:
    """Run the quick tests alone, those that need no torch: `nox -s unit -- -k journal`."""
    sync(session)
    session.run("pytest", *session.posargs)


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style, format, strict types, generated files and workflows, and change nothing."""
    sync(session)
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("mypy")
    session.run("mypy", "--python-version", "3.10")
    session.run("python", "-m", "harness.documents", "--check")
    session.run("jactionlint")
    session.run("zizmor", "--offline", "--quiet", ".github")
    schema = "--builtin-schema"
    workflows = sorted(str(path) for path in Path(".github/workflows").glob("*.yml"))
    session.run("check-jsonschema", schema, "vendor.github-workflows", *workflows)
    session.run("check-jsonschema", schema, "vendor.dependabot", ".github/dependabot.yml")


@nox.session(default=False)
def fix(session: nox.Session) -> None:
    """Mend what can be mended without thought: format, and ruff's safe fixes."""
    sync(session)
    session.run("ruff", "check", "--fix", *session.posargs)
    session.run("ruff", "format", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Generate the schemas and the tables of README again; `-- --check` only compares."""
    sync(session)
    session.run("python", "-m", "harness.documents", *session.posargs)


@nox.session(default=False)
def snapshots(session: nox.Session) -> None:
    """Accept the reports as they are rendered now as the expected ones; review the diff like code."""
    sync(session)
    session.run("pytest", "tests/unit", "--snapshot-update", *session.posargs)


# Last, because it is one line for each cell in `nox -l`.
@nox.session(venv_backend="none", default=False)
@nox.parametrize("cell", [nox.param(cell, id=cell) for cell in CELLS])
def cell(session: nox.Session, cell: str) -> None:
    """Measure one cell: `nox -s "cell(3.12-2.4)"`."""
    harness(session, "run", "--cells", cell, *session.posargs)
