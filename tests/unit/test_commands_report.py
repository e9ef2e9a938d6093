"""`report` and `merge`: everything right of the journal, from recorded journals alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.baseline import render
from harness.commands.report import narrowed, status_of
from harness.errors import ExitStatus
from harness.journal import Journal, read_records
from harness.results import (
    CaseRecord,
    CellRecord,
    Expectation,
    Findings,
    MachineRecord,
    NotRunReason,
    Observation,
    Record,
    Result,
    Standing,
    Verdict,
)
from tests.unit.projects import Project, make_project

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = MachineRecord(id="m1", harness="0.1", protocol=1, at="2026-12-01T10:00:00Z")
OTHER_MACHINE = replace(MACHINE, id="m2", at="2026-12-01T11:00:00Z")
CASE = CaseRecord(
    id="gate/decorator", title="Does it compile?", category="gate", kind="run",
    paths=("dynamo",), digest="d", text="import torch\n",
)  # fmt: skip


def cell(python: str, **changes: Any) -> CellRecord:
    settings: dict[str, Any] = {
        "id": f"{python}-2.4",
        "python": python,
        "torch": "2.4.1",
        "device": "cpu",
        "platform": "linux-x86_64",
        "era": "release",
        "status": "measured",
        "python_version": f"{python}.7",
        "torch_version": "2.4.1+cpu",
        "environment": f"env-{python}",
        "machine": "m1",
        "at": "2026-12-01T10:00:00Z",
        "order": int(python.rpartition(".")[2]),
    }
    return CellRecord(**{**settings, **changes})


def found(python: str, verdict: Verdict = Verdict.FULL, **changes: Any) -> Observation:
    settings: dict[str, Any] = {
        "cell": f"{python}-2.4",
        "case": "gate/decorator",
        "path": "dynamo",
        "verdict": verdict,
        "environment": f"env-{python}",
        "case_digest": "d",
        "protocol": 1,
        "at": "2026-12-01T10:00:01Z",
        "graphs": 1,
        "isolation": "fork",
    }
    return Observation(**{**settings, **changes})


FIRST = (MACHINE, CASE, cell("3.10"), found("3.10"))
SECOND = (OTHER_MACHINE, CASE, cell("3.12", machine="m2"), found("3.12"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return make_project(tmp_path, monkeypatch)


def record(file: Path, *records: Record) -> Path:
    with Journal.open(file) as journal:
        for one in records:
            journal.append(one)
    return file


def reports(folder: Path) -> dict[str, bytes]:
    names = ("support.json", "support.md", "index.html", "junit.xml", "summary.md")
    return {name: (folder / name).read_bytes() for name in names}


# ----------------------------------------------------------------------------------------------- report


def test_the_reports_are_made_again_from_the_journal_byte_for_byte(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    record(project.journal, *FIRST, *SECOND)
    assert project.call("report") == 0
    first = reports(project.root / "reports")
    told = capsys.readouterr()
    assert "3.10-2.4" in told.out
    assert "reports: reports/support.json" in told.err
    document = json.loads(first["support.json"])
    assert [result["verdict"] for result in document["results"]] == ["full", "full"]
    assert project.call("report") == 0
    assert reports(project.root / "reports") == first
    assert project.store.options == {}


def test_reports_may_be_read_and_written_elsewhere(project: Project, tmp_path: Path) -> None:
    one = record(tmp_path / "one.jsonl", *FIRST)
    two = record(tmp_path / "two.jsonl", *SECOND)
    words = ("--journal", str(one), "--journal", str(two), "--reports", str(tmp_path / "out"))
    assert project.call("report", *words) == 0
    document = json.loads(reports(tmp_path / "out")["support.json"])
    assert list(document["cells"]) == ["3.10-2.4", "3.12-2.4"]
    assert not project.journal.exists()


def test_what_is_published_is_written_where_it_is_published(
    project: Project, tmp_path: Path
) -> None:
    record(project.journal, *FIRST)
    assert project.call("report", "--publish", str(tmp_path / "docs")) == 0
    published = sorted(file.name for file in (tmp_path / "docs").iterdir())
    assert published == ["index.html", "support.json", "support.md"]


def test_a_torn_line_is_told_and_no_error(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    record(project.journal, *FIRST)
    torn = project.journal.read_bytes() + b'{"record":"obs\n' * 2
    project.journal.write_bytes(torn + b'{"rec')
    assert project.call("report") == 0
    assert "warning: 2 lines of the journal could not be read\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("records", "status"),
    [
        (FIRST, 0),
        ((*FIRST[:3], found("3.10", Verdict.WRONG)), 1),
        ((*FIRST[:3], found("3.10", Verdict.UNAVAILABLE)), 3),
        ((), 3),
        (
            (MACHINE, CASE, cell("3.10", status="not-run", reason=NotRunReason.NO_WHEEL)),
            3,
        ),
    ],
    ids=["works", "wrong", "unavailable", "empty", "not-run"],
)
def test_the_status_says_what_was_found(
    project: Project, records: tuple[Record, ...], status: int
) -> None:
    record(project.journal, *records)
    assert project.call("report") == status


def test_what_the_baseline_expects_is_no_difference(project: Project, tmp_path: Path) -> None:
    text = render("gate/decorator", {"dynamo": {"3.10-2.4": Expectation(verdict=Verdict.WRONG)}})
    for folder in (project.root / "baseline", tmp_path / "elsewhere"):
        (folder / "gate").mkdir(parents=True)
    (project.root / "baseline" / "gate" / "decorator.yaml").write_text(text, encoding="utf-8")
    record(project.journal, *FIRST[:3], found("3.10", Verdict.WRONG))
    assert project.call("report") == 0
    assert project.call("report", "--baseline", str(tmp_path / "elsewhere")) == 1


def test_a_missing_journal_is_told_with_the_way_to_one(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.call("report", "--reports", "elsewhere") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: elsewhere/journal.jsonl: there is no such journal\n  hint: ")
    assert not (project.root / "elsewhere").exists()


def test_annotations_are_for_github_alone(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record(project.journal, *FIRST[:3], found("3.10", Verdict.WRONG, message="2 differ"))
    project.call("report")
    assert "::" not in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.call("report")
    assert "\n::" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------------ merge


def test_the_journals_of_two_machines_become_one(project: Project, tmp_path: Path) -> None:
    one = record(tmp_path / "one.jsonl", *FIRST)
    two = record(tmp_path / "two.jsonl", *SECOND)
    assert project.call("merge", str(one), str(two)) == 0
    assert read_records(project.journal).records == (*FIRST, *SECOND)
    document = json.loads(reports(project.root / "reports")["support.json"])
    assert list(document["cells"]) == ["3.10-2.4", "3.12-2.4"]
    assert {result["cell"] for result in document["results"]} == {"3.10-2.4", "3.12-2.4"}


def test_the_order_of_journals_makes_no_difference_to_the_reports(
    project: Project, tmp_path: Path
) -> None:
    one = record(tmp_path / "one.jsonl", *FIRST)
    two = record(tmp_path / "two.jsonl", *SECOND)
    project.call("merge", str(one), str(two))
    first = reports(project.root / "reports")
    project.call("merge", str(two), str(one))
    assert reports(project.root / "reports") == first


def test_a_journal_is_not_merged_into_itself(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(project.journal, *FIRST)
    two = record(tmp_path / "two.jsonl", *SECOND)
    before = project.journal.read_bytes()
    for name in (str(project.journal), "reports/../reports/journal.jsonl"):
        assert project.call("merge", name, str(two)) == 2
        told = capsys.readouterr().err
        assert "a journal cannot be merged into itself" in told
        assert "--reports DIR" in told
        assert project.journal.read_bytes() == before


def test_what_stood_in_the_place_of_the_merged_journal_is_kept_aside(
    project: Project, tmp_path: Path
) -> None:
    record(project.journal, *FIRST)
    two = record(tmp_path / "two.jsonl", *SECOND)
    assert project.call("merge", str(two)) == 0
    assert read_records(project.journal).records == SECOND
    aside = project.journal.with_name("journal.previous.jsonl")
    assert read_records(aside).records == FIRST


def test_a_journal_that_a_run_is_writing_is_not_merged_over(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = record(tmp_path / "two.jsonl", *SECOND)
    with Journal.open(project.journal) as journal:
        for one in FIRST:
            journal.append(one)
        assert project.call("merge", str(two)) == 2
        journal.append(found("3.10", Verdict.WRONG))
    assert "another run is writing this journal" in capsys.readouterr().err
    assert len(read_records(project.journal).records) == len(FIRST) + 1


# ------------------------------------------------------------------------------------------- its parts


def result(observation: Observation, standing: Standing = Standing.EXPECTED) -> Result:
    return Result(observation=observation, cause=None, expectation=Expectation(), standing=standing)


def findings(*results: Result) -> Findings:
    return Findings(
        cells=(cell("3.10"), cell("3.12")),
        cases=(CASE, replace(CASE, id="gate/module")),
        results=results,
        machines=(MACHINE,),
        generated="2026-12-01T10:00:01Z",
    )


def test_a_run_is_judged_by_its_own_probes_alone() -> None:
    mine, other = found("3.10"), found("3.12", Verdict.WRONG)
    whole = findings(result(mine), result(other, Standing.NEW))
    assert status_of(whole) is ExitStatus.DIFFERENT
    own = narrowed(whole, {("3.10-2.4", "gate/decorator", "dynamo")})
    assert [found.cell for found in own.results] == ["3.10-2.4"]
    assert [found.id for found in own.cells] == ["3.10-2.4"]
    assert [found.id for found in own.cases] == ["gate/decorator"]
    assert status_of(own) is ExitStatus.OK
    assert narrowed(whole, ()).results == ()


@pytest.mark.parametrize("standing", Standing)
def test_every_difference_counts(standing: Standing) -> None:
    status = status_of(findings(result(found("3.10"), standing)))
    assert status == (ExitStatus.OK if standing is Standing.EXPECTED else ExitStatus.DIFFERENT)


def test_nothing_probed_is_never_ok() -> None:
    for verdict in (Verdict.NOT_RUN, Verdict.UNAVAILABLE):
        assert status_of(findings(result(found("3.10", verdict)))) is ExitStatus.NOTHING_PROBED
    assert status_of(findings()) is ExitStatus.NOTHING_PROBED
