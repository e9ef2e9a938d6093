"""`run` from the command line to the reports, with fake servers in the place of cells."""

from __future__ import annotations

import io
import json
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from harness import progress as progress_display
from harness.commands import run as run_command
from harness.environments import EnvironmentFailed
from harness.interpreters import InterpreterFetcher
from harness.journal import Journal, read_records
from harness.results import (
    CaseRecord,
    CellRecord,
    MachineRecord,
    NotRunReason,
    Observation,
    Verdict,
)
from tests.unit.projects import Project, make_project
from tests.unit.worlds import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the fake server is a script with a #! line"
    ),
]

WRONG = {"seen": {"verdict": "wrong", "message": "2 of 3 elements differ"}}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    before = signal.getsignal(signal.SIGTERM)
    yield make_project(tmp_path, monkeypatch)
    signal.signal(signal.SIGTERM, before)


def observations(project: Project) -> dict[str, Observation]:
    return {
        f"{record.cell} {record.case} {record.path}": record
        for record in read_records(project.journal).records
        if isinstance(record, Observation)
    }


def verdicts(project: Project) -> dict[str, str]:
    return {probe: found.verdict.value for probe, found in observations(project).items()}


def support(project: Project) -> dict[str, Any]:
    text = (project.root / "reports" / "support.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def test_a_run_measures_what_is_selected_and_reports_on_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.call("run") == 0
    assert verdicts(project) == {
        "3.12-2.4 bytecode/walrus dynamo": "full",
        "3.12-2.4 gate/decorator dynamo": "full",
        "3.12-2.4 gate/module dynamo": "full",
        "3.12-2.4 gate/decorator inductor": "full",
    }
    told = capsys.readouterr()
    assert "3.12-2.4" in told.out
    lines = [line for line in told.err.splitlines() if line.startswith("[")]
    assert len(lines) == 4
    assert re.fullmatch(r"\[1/4\] 3\.12-2\.4 \S+ dynamo: full \(0\.01 s\)", lines[0])
    records = read_records(project.journal).records
    assert isinstance(records[0], MachineRecord)
    assert records[0].facts["compiler"] == "g++ (fake) 12.2.0"
    cases = [record for record in records if isinstance(record, CaseRecord)]
    assert [case.id for case in cases] == ["bytecode/walrus", "gate/decorator", "gate/module"]
    assert cases[0].text == (project.root / "cases/bytecode/walrus.py").read_text()
    assert project.store.is_closed


def test_a_second_run_learns_nothing_and_changes_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.call("run")
    files = sorted((project.root / "reports").iterdir())
    before = {file: file.read_bytes() for file in files}
    capsys.readouterr()
    assert project.call("run") == 0
    assert {
        file: file.read_bytes() for file in sorted((project.root / "reports").iterdir())
    } == before
    assert project.store.prepared == ["3.12-2.4"]
    told = capsys.readouterr().err
    assert "4 results are known from before" in told
    assert "[" not in told


def test_fresh_measures_again_and_keeps_the_old_journal_aside(project: Project) -> None:
    project.call("run", "--cases", "gate/module")
    before = project.journal.read_bytes()
    assert project.call("run", "--cases", "gate/module", "--fresh") == 0
    assert project.journal.with_name("journal.previous.jsonl").read_bytes() == before
    assert len(project.store.python("3.12-2.4").looks()) == 2


def test_a_run_that_cannot_begin_moves_no_journal_aside(project: Project) -> None:
    project.call("run", "--cases", "gate/module")
    before = project.journal.read_bytes()
    assert project.call("run", "--fresh", "--paths", "jit-trace") == 2
    assert project.journal.read_bytes() == before


def test_a_difference_is_a_status_until_it_is_accepted(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.does("3.12-2.4", "gate/module dynamo", WRONG, WRONG)
    assert project.call("run", "--cases", "gate") == 1
    assert project.call("run", "--cases", "gate", "--accept") == 0
    assert "accepted: " in capsys.readouterr().err
    baseline = yaml.safe_load((project.root / "baseline/gate/module.yaml").read_text())
    assert "wrong" in json.dumps(baseline)
    assert not (project.root / "baseline/bytecode").exists()
    assert project.call("run", "--cases", "gate") == 0


def test_a_run_answers_for_its_own_probes_alone(project: Project) -> None:
    project.does("3.12-2.4", "gate/module dynamo", WRONG, WRONG)
    assert project.call("run", "--cases", "gate/module") == 1
    assert project.call("run", "--cases", "bytecode") == 0
    assert len(support(project)["results"]) == 2  # the reports are about all that is known


def test_the_journal_and_the_reports_may_stand_elsewhere(project: Project, tmp_path: Path) -> None:
    words = ("--reports", str(tmp_path / "out"), "--journal", str(tmp_path / "j" / "mine.jsonl"))
    assert project.call("run", "--cases", "gate/module", *words) == 0
    assert (tmp_path / "out" / "junit.xml").exists()
    assert (tmp_path / "j" / "mine.jsonl").exists()
    assert not (project.root / "reports").exists()


def test_a_case_that_cannot_be_read_is_told_and_the_others_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write_case("gate/broken", more="python = 3")
    assert project.call("run", "--cases", "gate") == 2
    assert len(verdicts(project)) == 3
    told = capsys.readouterr()
    assert "gate/broken.py:4: " in told.err
    assert "3.12-2.4" in told.out


def test_a_script_of_somebody_elses_is_a_case(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n", encoding="utf-8")
    assert project.call("run", "--cases", str(folder)) == 0
    assert verdicts(project) == {"3.12-2.4 train script": "full"}
    (request,) = [
        event["request"]
        for event in project.store.python("3.12-2.4").events
        if event["event"] == "begin"
    ]
    assert (request["kind"], request["file"]) == ("script", str(folder / "train.py"))


# ---------------------------------------------------------------------------------- nothing was learnt


def test_a_run_in_which_nothing_could_be_probed_is_no_success(project: Project) -> None:
    words = ("--cells", "3.12-2.4,3.14-2.4", "--record-not-run", "no runner is named")
    assert project.call("run", *words) == 3
    cells = [r for r in read_records(project.journal).records if isinstance(r, CellRecord)]
    assert {cell.reason for cell in cells} == {NotRunReason.NO_RUNNER}
    assert {cell.detail for cell in cells} == {"no runner is named"}
    assert {result["verdict"] for result in support(project)["results"]} == {"not-run"}
    assert project.store.prepared == []


@pytest.mark.parametrize(
    "reason", [NotRunReason.INDEX_UNREACHABLE, NotRunReason.DISK_FULL], ids=lambda r: r.name
)
def test_a_cell_that_cannot_be_built_is_not_run_and_the_others_are_measured(
    project: Project, reason: NotRunReason
) -> None:
    project.store.failing["3.10-2.4"] = EnvironmentFailed(reason, "uv says no", "error: no")
    words = ("run", "--cases", "gate/module", "--cells")
    assert project.call(*words, "3.10-2.4,3.12-2.4") == 0
    found = {result["cell"]: result["verdict"] for result in support(project)["results"]}
    assert found == {"3.10-2.4": "not-run", "3.12-2.4": "full"}
    assert project.call(*words, "3.10-2.4") == 3


def test_a_cell_of_which_only_the_unavailable_is_asked_is_no_success(project: Project) -> None:
    project.write_case("gate/newer", more='python = ">=3.14"')
    assert project.call("run", "--cases", "gate/newer") == 3
    assert verdicts(project) == {"3.12-2.4 gate/newer dynamo": "unavailable"}


# ----------------------------------------------------------------------------------------- the machine


def test_an_interpreter_of_ones_own_is_a_cell_and_the_only_one(project: Project) -> None:
    python = project.root / "venv" / "bin" / "python"
    assert project.call("run", "--cases", "gate/module", "--interpreter", str(python)) == 0
    assert project.store.adopted == [python]
    assert project.store.prepared == []
    assert verdicts(project) == {"3.12-2.4.1-adopted gate/module dynamo": "full"}
    cell = support(project)["cells"]["3.12-2.4.1-adopted"]
    assert (cell["era"], cell["torch"]) == ("adopted", "2.4.1")


def test_an_interpreter_stands_beside_the_cells_that_are_named(project: Project) -> None:
    words = ("--interpreter", "/x/python", "--cells", "3.12-2.4", "--cases", "gate/module")
    assert project.call("run", *words) == 0
    assert sorted(verdicts(project)) == [
        "3.12-2.4 gate/module dynamo",
        "3.12-2.4.1-adopted gate/module dynamo",
    ]


def test_as_many_probes_run_at_once_as_are_asked_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    class Stop(Exception):
        pass

    def make(_plan: object, means: Any, *_more: object) -> None:
        asked.append(means)
        raise Stop

    monkeypatch.setattr(run_command, "Runner", make)
    for words in ((), ("--jobs", "7", "--offline")):
        assert project.call("run", *words) == 4
    assert [means.cores for means in asked] == [2, 7]
    fetchers = [means.fetcher for means in asked]
    assert all(isinstance(fetcher, InterpreterFetcher) for fetcher in fetchers)
    assert [fetcher.offline for fetcher in fetchers] == [False, True]
    assert project.store.is_closed


@pytest.mark.parametrize(
    ("value", "colour"), [(None, True), ("", True), ("1", False), ("0", False)]
)
def test_no_color_is_honoured_where_it_is_not_empty(
    project: Project, monkeypatch: pytest.MonkeyPatch, value: str | None, colour: bool
) -> None:
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    asked: list[bool] = []

    def make(_stream: object, **options: Any) -> progress_display.Progress:
        asked.append(options["colour"])
        return progress_display.make_progress(io.StringIO(), **options)

    monkeypatch.setattr(run_command, "make_progress", make)
    project.call("run", "--record-not-run", "no need")
    assert asked == [colour]


def test_what_the_store_says_is_shown_with_the_progress(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = project.store.prepare

    def telling(*arguments: Any) -> Any:
        project.store.options["on_event"]("3.12-2.4: installing 27 packages")
        return prepare(*arguments)

    monkeypatch.setattr(type(project.store), "prepare", lambda _self, *a: telling(*a))
    assert project.call("run", "--cases", "gate/module") == 0
    assert "3.12-2.4: installing 27 packages\n" in capsys.readouterr().err


# ----------------------------------------------------------------------------------- in the midst of it


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_run_keeps_what_it_has_and_goes_on_from_there(
    project: Project, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    project.does("3.12-2.4", "gate/module dynamo", {"do": "silence"})
    python = project.store.python("3.12-2.4")

    def interrupt() -> None:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            hangs = python.looks("gate/module dynamo") and project.journal.exists()
            if hangs and len(observations(project)) == 3:
                break
            time.sleep(0.02)
        signal.raise_signal(number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert project.call("run") == 130
    thread.join()
    assert "all that was measured is kept" in capsys.readouterr().err
    assert set(verdicts(project).values()) == {"full"}
    assert len(verdicts(project)) == 3
    assert all(has_ended(pid) for pid in python.starts)
    assert project.store.is_closed
    assert project.call("run") == 0
    assert len(verdicts(project)) == 4
    assert len(python.looks("gate/decorator dynamo")) == 1


def test_two_runs_do_not_write_one_journal(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    with Journal.open(project.journal):
        assert project.call("run") == 2
    told = capsys.readouterr()
    assert "another run is writing this journal" in told.err
    assert told.out == ""
    assert project.store.prepared == []


def test_a_case_that_changes_is_measured_again(project: Project) -> None:
    project.call("run", "--cases", "gate/module")
    file = project.root / "cases" / "gate" / "module.py"
    file.write_text(file.read_text() + "# more\n", encoding="utf-8")
    assert project.call("run", "--cases", "gate/module") == 0
    assert len(project.store.python("3.12-2.4").looks()) == 2
    assert [result["verdict"] for result in support(project)["results"]] == ["full"]
    assert observations(project)["3.12-2.4 gate/module dynamo"].verdict is Verdict.FULL
