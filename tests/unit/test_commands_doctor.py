"""`doctor`: what this machine offers, and what stands in the store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.environments import StandingEnvironment
from tests.unit.projects import Project, make_project

if TYPE_CHECKING:
    from typing import Any


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = make_project(tmp_path, monkeypatch)
    found = project.interpreters
    found["3.10"] = replace(found["3.10"], path=Path("/usr/bin/python3.10"), has_headers=False)
    found["3.12"] = replace(found["3.12"], path=Path("/opt/python3.12"), source="pyenv")
    return project


def stand(project: Project) -> None:
    environment = project.store.make("3.12-2.4", "3.12", "2.4.1")
    project.store.stands = (
        StandingEnvironment(environment=environment, last_used=1_764_590_400.5, is_in_use=True),
    )


def test_the_facts_are_listed_each_with_what_follows_from_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    stand(project)
    assert project.call("doctor") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out == (
        "interpreters\n"
        "  3.10   3.10.1    /usr/bin/python3.10 (PATH); no Python.h: Inductor cannot compile with it\n"
        "  3.12   3.12.1    /opt/python3.12 (pyenv)\n"
        "  3.14   none found: its cells are not-run\n"
        "compiler\n"
        "  g++ (fake) 12.2.0\n"
        "devices\n"
        "  cpu: 2 cores, 2 cells at once\n"
        "  cuda: none: CUDA cells are not-run\n"
        "store\n"
        f"  {project.store.root}\n"
        "  5.0 GB held, 1.0 GB of it only uv's cache; budget 40.0 GB; 80.0 GB free on the disk\n"
        "environments, last used first; sizes count what they share\n"
        "  environment-of-3.12-2.4  3.12-2.4         Python 3.12.7   torch 2.4.1+cpu      2.5 GB"
        "  pytorch-cpu used 2025-12-01  in use\n"
    )


def test_what_is_missing_is_told_with_its_cure(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del project.interpreters["3.12"]
    monkeypatch.setattr("harness.machine.compiler_line", lambda _env: "")
    project.has_cuda = True
    assert project.call("doctor") == 0
    told = capsys.readouterr().out
    assert "  3.12   none found: uv will be asked to download one\n" in told
    assert "  none: Inductor needs one, such as g++; dynamo and aot do not\n" in told
    assert "  cuda: found\n" in told
    assert told.endswith("  none yet\n")


def test_json_is_one_document(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    stand(project)
    assert project.call("doctor", "--json") == 0
    told = capsys.readouterr()
    assert told.err == ""
    document: dict[str, Any] = json.loads(told.out)
    assert document["schema"] == 1
    assert document["interpreters"] == {
        "3.10": {"version": "3.10.1", "path": "/usr/bin/python3.10", "has_headers": False},
        "3.12": {"version": "3.12.1", "path": "/opt/python3.12", "has_headers": True},
        "3.14": None,
    }
    assert (document["compiler"], document["cores"], document["cuda"]) == (
        "g++ (fake) 12.2.0", 2, False,
    )  # fmt: skip
    assert document["store"] == {
        "root": str(project.store.root),
        "held_bytes": 5_000_000_000,
        "cache_bytes": 1_000_000_000,
        "budget_bytes": 40_000_000_000,
        "free_bytes": 80_000_000_000,
        "is_linked": True,
    }
    assert document["environments"] == [
        {
            "id": "environment-of-3.12-2.4",
            "cell": "3.12-2.4",
            "python": "3.12.7",
            "torch": "2.4.1+cpu",
            "index": "pytorch-cpu",
            "size_bytes": 2_500_000_000,
            "last_used": 1_764_590_400,
            "is_in_use": True,
        }
    ]


def test_a_machine_on_which_no_cell_could_run_is_no_success(project: Project) -> None:
    project.interpreters.clear()
    assert project.call("doctor") == 1
    assert project.call("doctor", "--json") == 1


def test_the_store_is_where_it_is_said_to_be(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.commands.run.user_cache_path", lambda name: Path("/cache") / name)
    project.call("doctor")
    assert project.store.options["root"] == Path("/cache/compile-matrix")
    monkeypatch.setenv("COMPILE_MATRIX_CACHE", "/by/variable")
    project.call("doctor")
    assert project.store.options["root"] == Path("/by/variable")
    words = ("--cache", "/by/option", "--offline", "--keep-envs", "--disk-budget", "40GB")
    project.call("doctor", *words)
    options = project.store.options
    assert options["root"] == Path("/by/option")
    assert (options["offline"], options["keep"]) == (True, True)
    assert options["budget_bytes"] == 40_000_000_000
