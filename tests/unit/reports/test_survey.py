"""How findings become columns, rows, states and ranges."""

from __future__ import annotations

import dataclasses

import pytest

from harness.reports.ranges import find_ranges, torch_key, torch_label
from harness.reports.survey import GATE, State, survey
from harness.results import Cause, CellRecord, Findings, NotRunReason, Result, Standing, Verdict
from tests.unit.reports.examples import (
    REFUSALS,
    make_case,
    make_cell,
    make_refusal,
    make_result,
    make_unmeasured,
)

GATE_CASE = make_case("gate/decorator", "Whether it compiles")
OTHER_CASE = make_case("bytecode/walrus", "An assignment expression")


def found(*results: Result, cells: tuple[CellRecord, ...] = (), generated: str = "") -> Findings:
    return Findings(
        cells=cells or (make_cell("3.12-2.4", "2.4.1"),),
        cases=(GATE_CASE, OTHER_CASE),
        results=results,
        machines=(),
        generated=generated,
    )


def state_of(*results: Result, path: str = "dynamo") -> State:
    return survey(found(*results)).columns[0].states[path].state


def error(case: str, cause: Cause = Cause.BACKEND_FAILED, path: str = "dynamo") -> Result:
    return make_result("3.12-2.4", case, path, Verdict.ERROR, cause=cause)


def full(case: str, path: str = "dynamo") -> Result:
    return make_result("3.12-2.4", case, path)


def test_the_gate_decides_where_it_was_probed() -> None:
    assert state_of(full("gate/decorator"), error("bytecode/walrus")) is State.COMPILES
    assert state_of(error("gate/decorator"), full("bytecode/walrus")) is State.FAILS


def test_without_a_gate_all_probes_decide() -> None:
    assert state_of(full("bytecode/walrus")) is State.COMPILES
    assert state_of(full("bytecode/walrus"), error("bytecode/other")) is State.IN_PART
    assert state_of(error("bytecode/walrus")) is State.FAILS
    assert state_of(full("bytecode/walrus"), path="inductor") is State.UNKNOWN


@pytest.mark.parametrize("verdict", [Verdict.UNAVAILABLE, Verdict.NOT_RUN, Verdict.INVALID])
def test_what_says_nothing_of_the_compiler_decides_nothing(verdict: Verdict) -> None:
    silent = make_result("3.12-2.4", "gate/decorator", "dynamo", verdict)
    assert state_of(silent) is State.UNKNOWN


def test_a_failure_is_named_by_its_cause_where_all_agree() -> None:
    column = survey(found(error("gate/decorator", Cause.CXX_COMPILER_MISSING))).columns[0]
    assert column.states["dynamo"].label == "fails: cxx-compiler-missing"
    mixed = found(error("gate/decorator"), error("gate/module", Cause.TRITON_MISSING))
    mixed = dataclasses.replace(mixed, cases=(GATE_CASE, make_case("gate/module", "")))
    assert survey(mixed).columns[0].states["dynamo"].label == "fails"


def test_a_cell_is_refused_only_if_every_gate_probe_is() -> None:
    cell = make_cell("3.12-2.3", "2.3.1")
    refusals = [make_refusal(cell.id, GATE_CASE.id, path) for path in ("dynamo", "aot")]
    column = survey(found(*refusals, cells=(cell,))).columns[0]
    assert column.refusals == (f"RuntimeError: {REFUSALS[cell.id]}",)
    assert column.states["dynamo"].state is State.REFUSED
    works = make_result(cell.id, GATE_CASE.id, "inductor")
    assert survey(found(*refusals, works, cells=(cell,))).columns[0].refusals == ()


def test_the_gate_comes_first_and_paths_keep_the_order_of_their_case() -> None:
    rows = (full("bytecode/walrus", "inductor"), full("bytecode/walrus"), full("gate/decorator"))
    extra = full("bytecode/walrus", "inductor-dynamic")
    laid_out = survey(found(*rows, extra))
    assert [(name, [row.path for row in rows]) for name, rows in laid_out.groups] == [
        (GATE, ["dynamo"]),
        ("bytecode", ["dynamo", "inductor", "inductor-dynamic"]),
    ]
    assert "gate/decorator [aot]" in laid_out.without_result


def test_a_column_without_any_measurement_is_folded_with_its_reason() -> None:
    cells = (
        make_unmeasured("3.14-2.9", "2.9.1", NotRunReason.NO_INTERPRETER, "no Python 3.14"),
        make_cell("3.12-2.4", "2.4.1"),
        make_cell("3.13-2.6", "2.6.0"),
    )
    silent = make_result(
        "3.13-2.6", GATE_CASE.id, "dynamo", Verdict.NOT_RUN, not_run=NotRunReason.WORKER_FAILED
    )
    laid_out = survey(found(full("gate/decorator"), silent, cells=cells))
    assert [column.cell.id for column in laid_out.shown] == ["3.12-2.4"]
    assert [column.why_not_run for column in laid_out.folded] == [
        "no interpreter: no Python 3.14",
        "worker failed",
    ]
    interrupted = survey(found(cells=(make_cell("3.12-2.4", "2.4.1"),)))
    assert interrupted.folded[0].why_not_run == "no probe was finished"


def test_results_without_their_records_are_laid_out_as_well() -> None:
    stray = make_result("3.99-9.9", "unknown/case", "dynamo")
    laid_out = survey(found(stray))
    assert laid_out.columns[-1].cell.id == "3.99-9.9"
    assert [name for name, _ in laid_out.groups] == ["unknown"]


def test_differences_are_told_worse_first() -> None:
    standings = (Standing.BETTER, Standing.CHANGED, Standing.EXPECTED, Standing.NEW, Standing.WORSE)
    results = [
        make_result("3.12-2.4", f"c/{standing.value}", "dynamo", standing=standing)
        for standing in standings
    ]
    order = [standing for standing, _ in survey(found(*results)).differences]
    assert order == [Standing.WORSE, Standing.NEW, Standing.CHANGED, Standing.BETTER]


def test_a_column_is_stale_against_the_newest_measurement_not_against_a_clock() -> None:
    old = make_result("3.12-2.4", "gate/decorator", "dynamo", at="2026-10-01T00:00:00Z")
    recent = make_result("3.12-2.4", "gate/module", "dynamo", at="2026-10-03T00:00:00Z")
    column = survey(found(old, recent, generated="2026-12-01T00:00:00Z")).columns[0]
    assert column.is_stale
    assert column.days == "2026-10-01 to 2026-10-03"
    assert not survey(found(old, generated="2026-10-20T00:00:00Z")).columns[0].is_stale
    assert not survey(found(old, generated="some day")).columns[0].is_stale


# Ranges


def column_states(*versions: tuple[str, bool | None]) -> Findings:
    """Cells of one Python; True: compiles, False: fails, None: no wheel."""
    cells: list[CellRecord] = []
    results: list[Result] = []
    for version, works in versions:
        series = ".".join(version.split(".")[:2])
        if works is None:
            cells.append(
                make_unmeasured(f"3.12-{series}", version, NotRunReason.NO_WHEEL, "no wheel")
            )
            continue
        cell = make_cell(f"3.12-{series}", version)
        cells.append(cell)
        verdict = Verdict.FULL if works else Verdict.ERROR
        results.append(make_result(cell.id, GATE_CASE.id, "dynamo", verdict))
    return found(*results, cells=tuple(cells))


def test_both_ends_of_a_range_are_told() -> None:
    findings = column_states(("2.3.1", False), ("2.4.1", True), ("2.5.1", True), ("2.10.0", True))
    (range_,) = find_ranges(survey(findings).columns)
    assert (range_.first_compiles, range_.last_fails) == ("2.4", "2.3")
    assert range_.compiles == ("2.4–2.5", "2.10")
    assert range_.fails == ("2.3",)
    assert range_.gaps == ("2.6–2.9 (not in this run)",)
    assert range_.paths == ("dynamo",)


def test_support_that_goes_away_stays_several_intervals() -> None:
    findings = column_states(("2.0.1", True), ("2.1.2", False), ("2.2.2", True), ("2.3.1", False))
    (range_,) = find_ranges(survey(findings).columns)
    assert range_.compiles == ("2.0", "2.2")
    assert range_.fails == ("2.1", "2.3")
    assert (range_.first_compiles, range_.last_fails) == ("2.0", "2.3")


def test_an_unmeasured_release_never_inherits_from_its_neighbours() -> None:
    findings = column_states(
        ("2.3.1", True), ("2.4.1", None), ("2.5.1", None), ("2.6.0", True), ("3.1.0", True)
    )
    (range_,) = find_ranges(survey(findings).columns)
    assert range_.compiles == ("2.3", "2.6", "3.1")
    assert range_.gaps == ("2.4–2.5 (no wheel)", "after 2.6, before 3.1 (not in this run)")


def test_a_torch_without_a_version_has_no_neighbours() -> None:
    stray = make_result("unknown", GATE_CASE.id, "dynamo")
    findings = found(stray, make_result("strange", GATE_CASE.id, "dynamo"), cells=())
    ranges = find_ranges(survey(findings).columns)
    assert [range_.gaps for range_ in ranges] == [()]


def test_paths_that_disagree_have_ranges_of_their_own() -> None:
    cell = make_cell("3.12-2.4", "2.4.1")
    results = (full("gate/decorator"), full("gate/decorator", "aot"))
    failing = error("gate/decorator", path="inductor")
    ranges = find_ranges(survey(found(*results, failing, cells=(cell,))).columns)
    assert [range_.paths for range_ in ranges] == [("dynamo", "aot"), ("inductor",)]


def test_torch_is_named_by_its_series_unless_asked_for_exactly() -> None:
    assert torch_label(make_cell("3.12-2.4", "2.4.1")) == "2.4"
    assert torch_label(make_cell("3.12-2.4.0", "2.4.0")) == "2.4.0"
    assert torch_label(make_cell("3.12-2.4-cuda", "2.4.1", device="cuda")) == "2.4"
    assert sorted(("2.10.0", "2.9.1", "2.9.0+cu128"), key=torch_key) == [
        "2.9.0+cu128",
        "2.9.1",
        "2.10.0",
    ]
