"""What counts of all that was recorded, whatever the order in which journals are read."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.baseline import Baseline
from harness.findings import judge
from harness.results import (
    CaseRecord,
    Cause,
    CellRecord,
    Expectation,
    Findings,
    MachineRecord,
    NotRunReason,
    Observation,
    Record,
    Standing,
    Verdict,
)

NOTHING = Baseline()
CASE = CaseRecord(
    id="x/case", title="?", category="x", kind="run", paths=("dynamo", "aot"), digest="d1"
)
CELL = CellRecord(
    id="3.12-2.4",
    python="3.12",
    torch="2.4.1",
    device="cpu",
    platform="linux-x86_64",
    era="release",
    status="measured",
    environment="e1",
    at="2026-12-01T04:00:00Z",
    order=2,
)
SEEN = Observation(
    cell=CELL.id,
    case=CASE.id,
    path="dynamo",
    verdict=Verdict.FULL,
    environment="e1",
    case_digest="d1",
    protocol=1,
    at="2026-12-01T05:00:00Z",
)
FAILED = replace(SEEN, path="aot", verdict=Verdict.ERROR, message="Dynamo is not supported")


def no_cause(_observation: Observation) -> None:
    return None


def findings(*records: Record, baseline: Baseline = NOTHING) -> Findings:
    return judge(records, baseline, diagnose=no_cause)


def observed(*records: Record) -> tuple[Observation, ...]:
    return tuple(result.observation for result in findings(*records).results)


def not_run(cell: CellRecord, reason: NotRunReason, detail: str = "") -> CellRecord:
    return replace(cell, status="not-run", reason=reason, detail=detail, environment="")


def test_nothing_recorded_is_nothing_found() -> None:
    empty = Findings(cells=(), cases=(), results=(), machines=(), generated="")
    assert findings() == empty


def test_a_result_is_an_observation_with_cause_and_standing() -> None:
    known = {CASE.id: {"dynamo": {CELL.id: Expectation(verdict=Verdict.PARTIAL)}}}
    found = judge(
        (CELL, CASE, FAILED, SEEN),
        Baseline(cases=known),
        diagnose=lambda o: Cause.UNKNOWN if o.verdict is Verdict.ERROR else None,
    )
    first, second = found.results
    assert (first.observation, first.cause, first.standing) == (FAILED, Cause.UNKNOWN, Standing.NEW)
    assert first.expectation == Expectation()
    assert (second.observation, second.cause) == (SEEN, None)
    assert second.expectation == Expectation(verdict=Verdict.PARTIAL)
    assert second.standing is Standing.BETTER


def test_the_harness_own_rules_give_the_cause() -> None:
    (result,) = judge((CELL, CASE, replace(SEEN, verdict=Verdict.WRONG)), NOTHING).results
    assert result.cause is Cause.WRONG_RESULT


def test_everything_has_its_order() -> None:
    early = replace(CELL, id="3.9-2.0", order=1)
    twin = replace(CELL, id="3.12-2.3", order=2)
    second = replace(CASE, id="a/case", paths=("aot",))
    machines = (
        MachineRecord(id="b", harness="1", protocol=1, at="2026-12-01"),
        MachineRecord(id="a", harness="1", protocol=1, at="2026-12-02"),
    )
    probes = [
        replace(SEEN, cell=cell.id, case=case.id, path=path, at=f"2026-12-0{number}")
        for number, cell in enumerate((early, twin, CELL), 1)
        for case in (second, CASE)
        for path in ("aot", "dynamo")
    ]
    records: list[Record] = [CELL, twin, early, CASE, second, *machines, *probes]
    for seed in range(20):
        random.Random(seed).shuffle(records)
        found = findings(*records)
        assert [cell.id for cell in found.cells] == ["3.9-2.0", "3.12-2.3", "3.12-2.4"]
        assert [case.id for case in found.cases] == ["a/case", "x/case"]
        assert [result.observation for result in found.results] == probes
        assert found.machines == machines
        assert found.generated == "2026-12-03"


def test_the_order_of_journals_changes_nothing() -> None:
    """Two machines measured the same cell, one of them an older text of a case, with another worker."""
    older: list[Record] = [
        MachineRecord(id="m1", harness="1", protocol=1, at="2026-11-01"),
        CASE,
        replace(CASE, id="x/other", title="old", digest="old"),
        replace(CELL, environment="e0", at="2026-11-01"),
        replace(SEEN, environment="e0", at="2026-11-02"),
        replace(SEEN, case="x/other", case_digest="old", environment="e0", at="2026-11-02"),
    ]
    newer: list[Record] = [
        MachineRecord(id="m2", harness="1", protocol=1, at="2026-12-01"),
        CASE,
        replace(CASE, id="x/other", title="new", digest="new"),
        CELL,
        SEEN,
        FAILED,
        replace(SEEN, case="x/other", case_digest="new"),
    ]
    elsewhere: list[Record] = [replace(CELL, id="3.13-2.5"), CASE, replace(SEEN, cell="3.13-2.5")]
    found = findings(*older, *newer, *elsewhere)
    assert [result.observation.at for result in found.results] == [SEEN.at] * 4
    assert [case.title for case in found.cases] == ["?", "new"]
    journals = [older, newer, elsewhere]
    for seed in range(20):
        random.Random(seed).shuffle(journals)
        assert findings(*(record for journal in journals for record in journal)) == found


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_observations_the_newer_counts(swapped: bool) -> None:
    newer = replace(SEEN, verdict=Verdict.PARTIAL, at="2026-12-01T06:00:00Z")
    both = (newer, SEEN) if swapped else (SEEN, newer)
    assert observed(CELL, CASE, *both) == (newer,)


def test_of_two_of_the_same_moment_the_later_line_counts() -> None:
    again = replace(SEEN, verdict=Verdict.PARTIAL)
    assert observed(CELL, CASE, SEEN, again) == (again,)
    later = not_run(CELL, NotRunReason.WORKER_FAILED)
    assert findings(CELL, later).cells == (later,)
    assert findings(later, CELL).cells == (CELL,)


@pytest.mark.parametrize(
    "stale",
    [
        replace(SEEN, case_digest="d0"),
        replace(SEEN, environment="e0"),
        replace(SEEN, environment=""),
        replace(SEEN, protocol=0),
        replace(SEEN, cell="3.9-1.0"),
        replace(SEEN, case="x/unknown"),
        replace(SEEN, verdict=Verdict.NOT_RUN, case_digest="d0", environment=""),
    ],
)
def test_no_result_is_inherited(stale: Observation) -> None:
    newer = replace(stale, at="2027-01-01")
    assert observed(CELL, CASE, newer, FAILED) == (FAILED,)


def test_a_machine_with_a_newer_worker_makes_older_results_stale() -> None:
    machine = MachineRecord(id="m", harness="1", protocol=2)
    assert observed(CELL, CASE, SEEN) == (SEEN,)
    assert observed(CELL, CASE, SEEN, machine) == ()


def test_what_needed_no_environment_hangs_on_its_case_alone() -> None:
    beforehand = replace(SEEN, verdict=Verdict.UNAVAILABLE, environment="", protocol=0)
    assert observed(CELL, CASE, beforehand, FAILED) == (FAILED, beforehand)


def test_the_text_measured_last_is_the_case() -> None:
    edited = replace(CASE, digest="d2", title="edited")
    measured = replace(SEEN, case_digest="d2", at="2026-12-01T06:00:00Z")
    assert findings(CELL, CASE, SEEN, edited).cases == (edited,), "not measured yet"
    assert observed(CELL, CASE, SEEN, edited) == ()
    assert findings(CELL, edited, measured, CASE, SEEN).cases == (edited,)
    assert observed(CELL, edited, measured, CASE, SEEN) == (measured,)
    assert findings(CASE, edited).cases == (edited,)


def test_a_result_from_before_an_edit_counts_again_when_the_edit_is_undone() -> None:
    edited = replace(CASE, digest="d2")
    between = replace(SEEN, case_digest="d2", path="aot", at="2026-12-01T04:30:00Z")
    assert observed(CELL, CASE, SEEN, edited, between, CASE) == (SEEN,)


def test_a_cell_that_could_not_run_says_so_of_every_probe() -> None:
    cell = not_run(CELL, NotRunReason.NO_WHEEL, "torch 2.4 has none for Python 3.14")
    other = replace(CASE, id="y/other", paths=("script",), digest="d9")
    found = findings(cell, CASE, other)
    expected = Observation(
        cell=cell.id,
        case="x/case",
        path="aot",
        verdict=Verdict.NOT_RUN,
        not_run=NotRunReason.NO_WHEEL,
        message="torch 2.4 has none for Python 3.14",
        case_digest="d1",
        at=cell.at,
    )
    assert [result.observation for result in found.results] == [
        expected,
        replace(expected, path="dynamo"),
        replace(expected, case="y/other", path="script", case_digest="d9"),
    ]
    assert {result.standing for result in found.results} == {Standing.EXPECTED}
    assert found.generated == cell.at


def test_what_was_seen_before_a_cell_broke_down_is_kept() -> None:
    broken = replace(not_run(CELL, NotRunReason.WORKER_FAILED), environment="e1")
    kept, missing = findings(broken, CASE, FAILED).results
    assert kept.observation == FAILED
    assert (missing.path, missing.verdict) == ("dynamo", Verdict.NOT_RUN)


def test_yesterdays_results_are_not_those_of_a_cell_that_cannot_be_built_today() -> None:
    today = replace(not_run(CELL, NotRunReason.INDEX_UNREACHABLE), at="2026-12-02")
    found = findings(CELL, CASE, SEEN, FAILED, today)
    assert [result.verdict for result in found.results] == [Verdict.NOT_RUN] * 2


@pytest.mark.parametrize(("at", "reason"), [("2026-11-30", "today"), ("2026-12-02", "mine")])
def test_of_two_reasons_the_newer_counts(at: str, reason: str) -> None:
    cell = not_run(CELL, NotRunReason.NO_RUNNER, "today")
    own = replace(
        SEEN, verdict=Verdict.NOT_RUN, environment="", not_run=None, message="mine", at=at
    )
    _, dynamo = observed(cell, CASE, own)
    assert dynamo.message == reason
