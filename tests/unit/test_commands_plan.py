"""`plan`, and the words by which every command selects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from harness.commands import plan as plan_command
from harness.commands import project as project_command
from harness.commands.project import choose_cases
from harness.errors import HarnessError, HarnessErrors
from tests.unit.projects import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return make_project(tmp_path, monkeypatch)


@pytest.fixture
def planned(project: Project, capsys: pytest.CaptureFixture[str]) -> Any:
    """What `plan --json` says to some words."""

    def plan(*words: str) -> dict[str, Any]:
        assert project.call("plan", "--json", *words) == 0
        told = capsys.readouterr()
        assert told.err == ""
        document: dict[str, Any] = json.loads(told.out)
        return document

    return plan


def cell_ids(document: dict[str, Any]) -> list[str]:
    return [cell["id"] for cell in document["cells"]]


def probes(document: dict[str, Any]) -> list[str]:
    return [f"{p['case']} {p['path']}" for p in document["cells"][0]["probes"]]


# ---------------------------------------------------------------------------------------------- output


def test_the_table_says_what_would_run_and_why_not_the_rest(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--cells", "3.12-2.3,3.12-2.4,3.12-2.4-cuda,3.14-2.4,3.14-2.10")
    assert project.call("plan", *words) == 0
    assert capsys.readouterr().out == (
        "3.12-2.3       torch 2.3.1   4 probes\n"
        "3.12-2.4       torch 2.4.1   4 probes\n"
        "3.14-2.4       torch 2.4.1   not-run: no wheel: torch 2.4.1 has wheels for Python 3.10 and"
        " 3.12 on linux-x86_64, none for 3.14\n"
        "3.14-2.10      torch 2.10.0  not-run: no interpreter for Python 3.14 here\n"
        "3.12-2.4-cuda  torch 2.4.1   not-run: no CUDA device on this machine\n"
        "3 cases; 8 probes in 2 of 5 cells\n"
    )


def test_a_python_that_uv_can_download_is_no_reason_not_to_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    del project.interpreters["3.12"]
    assert project.call("plan") == 0
    assert capsys.readouterr().out == (
        "3.12-2.4  torch 2.4.1   4 probes, once uv has downloaded Python 3.12\n"
        "3 cases; 4 probes in 1 of 1 cells\n"
    )


def test_a_case_that_cannot_be_read_is_told_beside_the_plan(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_case("gate/broken", more="python = 3")
    for form in ((), ("--json",), ("--github",)):
        assert project.call("plan", *form) == 0
        told = capsys.readouterr()
        assert told.err.startswith("error: ")
        assert "gate/broken.py:4: " in told.err
        assert "3.12-2.4" in told.out


def test_json_is_one_document_with_every_probe(planned: Any) -> None:
    document = planned("--cells", "3.12-2.4,3.14-2.4", "--cases", "gate/*")
    assert document["schema"] == 1
    first, second = document["cells"]
    assert first == {
        "id": "3.12-2.4",
        "python": "3.12",
        "torch": "2.4.1",
        "device": "cpu",
        "era": "release",
        "platform": "linux-x86_64",
        "not_run": None,
        "probes": [
            {"case": "gate/decorator", "path": "dynamo", "isolation": "fork"},
            {"case": "gate/module", "path": "dynamo", "isolation": "fork"},
            {"case": "gate/decorator", "path": "inductor", "isolation": "fork"},
        ],
    }
    assert second["not_run"].startswith("no wheel: torch 2.4.1 has wheels for")


def test_the_isolation_that_is_asked_for_is_planned(
    planned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def isolations(*words: str) -> set[str]:
        return {probe["isolation"] for probe in planned(*words)["cells"][0]["probes"]}

    assert isolations() == {"fork"}
    assert isolations("--isolation", "process") == {"process"}
    monkeypatch.setattr("harness.machine.can_fork", lambda: False)
    assert isolations() == {"process"}


def test_the_lines_for_github_are_exactly_these(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--cells", "3.12-2.4,3.10-2.3,3.14-2.4,3.14-2.10,3.12-2.4-cuda")
    assert project.call("plan", "--github", *words) == 0
    told = capsys.readouterr()
    assert told.out == (
        'matrix={"include":['
        '{"cell":"3.10-2.3","python":"3.10","runner":"ubuntu-latest"},'
        '{"cell":"3.12-2.4","python":"3.12","runner":"ubuntu-latest"},'
        '{"cell":"3.14-2.10","python":"3.14","runner":"ubuntu-latest"}]}\n'
        "excluded=3.14-2.4\n"
    )
    assert told.err == ""


def test_more_jobs_than_github_takes_are_refused(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.call("plan", "--github", "--profile", "full") == 0
    monkeypatch.setattr(plan_command, "_JOB_LIMIT", 6)
    capsys.readouterr()
    assert project.call("plan", "--github", "--profile", "full") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "error: 7 cells are more than the 6 jobs of one job matrix\n"
        "  hint: plan a smaller selection: --profile or --cells\n"
    )


def test_the_limit_is_githubs() -> None:
    assert plan_command._JOB_LIMIT == 256


# -------------------------------------------------------------------------------------------- selection


def test_the_quick_profile_is_what_is_meant_without_a_word(planned: Any) -> None:
    assert cell_ids(planned()) == ["3.12-2.4"]
    assert cell_ids(planned("--profile", "gpu")) == ["3.12-2.4-cuda"]
    assert len(cell_ids(planned("--profile", "full"))) == 9


def test_cells_are_selected_by_patterns_with_commas_or_again(planned: Any) -> None:
    assert cell_ids(planned("--cells", "3.10-*")) == ["3.10-2.3", "3.10-2.4", "3.10-2.10"]
    both = ["3.10-2.4", "3.12-2.4"]
    assert cell_ids(planned("--cells", "3.12-2.4, 3.10-2.4")) == both
    assert cell_ids(planned("--cells", "3.12-2.4", "--cells", "3.10-2.4")) == both
    assert cell_ids(planned("--cells", "3.12-2.4.0")) == ["3.12-2.4.0"]
    assert cell_ids(planned("--cells", "3.12-2.4", "--profile", "full")) == ["3.12-2.4"]


def test_the_newest_python_is_one_that_is_found(planned: Any, project: Project) -> None:
    assert cell_ids(planned("--cells", "newest")) == ["3.12-2.10"]
    project.interpreters["3.14"] = project.interpreters["3.12"]
    assert cell_ids(planned("--cells", "newest")) == ["3.14-2.10"]


def test_paths_are_selected_by_patterns(planned: Any) -> None:
    assert probes(planned("--paths", "inductor")) == ["gate/decorator inductor"]
    assert len(probes(planned("--paths", "dynamo,inductor"))) == 4
    assert len(probes(planned("--paths", "dynamo", "--paths", "ind*"))) == 4


@pytest.mark.parametrize(
    ("words", "cases"),
    [
        ((), ["bytecode/walrus", "gate/decorator", "gate/module"]),
        (("gate/*",), ["gate/decorator", "gate/module"]),
        (("gate",), ["gate/decorator", "gate/module"]),
        (("gate/module",), ["gate/module"]),
        (("gate/module,bytecode/walrus",), ["bytecode/walrus", "gate/module"]),
        (("gate/module", "bytecode"), ["bytecode/walrus", "gate/module"]),
        (("gate/module.py",), ["gate/module"]),
        # A path into the project's own cases means the same as the pattern.
        (("cases/gate",), ["gate/decorator", "gate/module"]),
        (("./cases/gate/module.py",), ["gate/module"]),
        (("cases",), ["bytecode/walrus", "gate/decorator", "gate/module"]),
    ],
)
def test_cases_of_the_project_are_selected_by_id_folder_pattern_or_path(
    planned: Any, words: tuple[str, ...], cases: list[str]
) -> None:
    options = [option for word in words for option in ("--cases", word)]
    found = planned(*options, "--paths", "dynamo")
    assert [probe["case"] for probe in found["cells"][0]["probes"]] == cases


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of somebody's own, beside the project."""
    folder = tmp_path / "mine"
    (folder / "sub").mkdir(parents=True)
    (folder / "plain.py").write_text('"""A script."""\nprint("hello")\n', encoding="utf-8")
    (folder / "sub" / "other.py").write_text("print('hello')\n", encoding="utf-8")
    (folder / "_not_a_case.py").write_text("", encoding="utf-8")
    return folder


def test_a_folder_outside_the_project_is_a_corpus(planned: Any, outside: Path) -> None:
    assert probes(planned("--cases", str(outside))) == ["plain script", "sub/other script"]
    assert probes(planned("--cases", "../mine/sub")) == ["other script"]
    assert probes(planned("--cases", "../mine/plain.py")) == ["mine/plain script"]


def test_what_is_outside_comes_with_what_is_named_of_the_projects_own(
    planned: Any, outside: Path
) -> None:
    found = planned("--cases", str(outside / "sub"), "--cases", "gate/module")
    assert sorted(probes(found)) == ["gate/module dynamo", "other script"]


def test_a_folder_here_with_the_name_of_the_projects_own_is_not_meant(
    planned: Any, project: Project
) -> None:
    (project.root / "gate").mkdir()
    (project.root / "gate" / "other.py").write_text("print()\n", encoding="utf-8")
    found = planned("--cases", "gate", "--paths", "dynamo")
    assert probes(found) == ["gate/decorator dynamo", "gate/module dynamo"]
    assert probes(planned("--cases", "./gate")) == ["other script"]


def test_one_id_for_two_files_is_a_mistake_and_not_a_choice(
    project: Project, tmp_path: Path
) -> None:
    folder = tmp_path / "mine" / "gate"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("print()\n", encoding="utf-8")
    cases, mistakes = choose_cases(project.root / "cases", ["gate/module", str(folder.parent)])
    assert [case.file for case in cases] == [project.root / "cases" / "gate" / "module.py"]
    assert [mistake.where for mistake in mistakes] == [str(folder / "module.py")]
    assert "already that of" in mistakes[0].message


def test_a_case_that_cannot_be_read_is_why_none_is_meant(project: Project) -> None:
    file = project.write_case("gate/broken", more="python = 3")
    for word in ("gate/broken", str(file)):
        with pytest.raises(HarnessErrors) as caught:
            choose_cases(project.root / "cases", [word])
        told = caught.value.render()
        assert told.startswith("error: no case is meant by 'gate/broken")
        assert f"error: {file}:4: " in told


def test_a_project_without_cases_says_so(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="the folder holds no case"):
        choose_cases(tmp_path, [])


def test_no_case_is_read_from_here_because_a_word_is_empty(project: Project) -> None:
    with pytest.raises(HarnessError, match="an empty case pattern"):
        choose_cases(project.root / "cases", [""])


# ---------------------------------------------------------------------------------------- the project


@pytest.mark.parametrize("below", ["cases", "cases/gate", "reports/deep/er"])
def test_the_project_is_found_from_a_folder_in_it(
    planned: Any, project: Project, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    folder = project.root / below
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    assert cell_ids(planned()) == ["3.12-2.4"]


def test_the_project_may_be_named(
    planned: Any, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cell_ids(planned("--project", str(project.root))) == ["3.12-2.4"]
    assert cell_ids(planned("--project", "project")) == ["3.12-2.4"]


def test_elsewhere_the_projects_own_checkout_is_meant(
    planned: Any, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    installed = project.root / "harness" / "commands" / "project.py"
    monkeypatch.setattr(project_command, "__file__", str(installed))
    assert cell_ids(planned()) == ["3.12-2.4"]


def test_where_there_is_no_project_the_way_to_one_is_told(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(project_command, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    assert project.call("plan") == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}: there is no matrix.yaml in this folder or above it\n"
        "  hint: run this in a checkout of the project, or name one with --project\n"
    )
