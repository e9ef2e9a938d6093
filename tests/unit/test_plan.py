"""What a selection comes to: which probes, in which order, how they are kept apart and how long they may take."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from packaging.specifiers import SpecifierSet

from harness.matrix import Device
from harness.plan import Plan, Probe, make_plan, why_not
from harness.results import NotRunReason
from tests.unit.worlds import make_case, make_cell, make_matrix

MATRIX = make_matrix()
CPU, CUDA = make_cell(), make_cell(device=Device.CUDA)
ALL = ("dynamo", "aot", "inductor", "inductor-dynamic", "jit-trace", "script")


def plan(*cases: Any, cells: Any = (CPU,), paths: Any = ALL, **options: Any) -> Plan:
    return make_plan(cells, cases, paths, MATRIX, **options)


def keys(planned: Plan) -> list[tuple[str, str]]:
    return [(probe.case.id, probe.path) for cell in planned.cells for probe in cell.probes]


def test_a_case_is_asked_on_its_own_paths_as_far_as_they_are_selected() -> None:
    case = make_case("a/b", paths=("dynamo", "inductor"))
    assert keys(plan(case)) == [("a/b", "dynamo"), ("a/b", "inductor")]
    assert keys(plan(case, paths=("inductor", "aot"))) == [("a/b", "inductor")]


def test_every_case_is_asked_in_every_cell() -> None:
    cells = (CPU, make_cell("3.10"))
    planned = plan(make_case("a/a"), make_case("a/b"), cells=cells)
    assert [cell.cell for cell in planned.cells] == list(cells)
    assert planned.probe_count == 4
    assert planned.cells[1].probes[0].key == ("3.10-2.4", "a/a", "dynamo")


def test_a_case_without_a_probe_is_no_part_of_the_plan() -> None:
    planned = plan(make_case("a/a"), make_case("a/b", paths=("aot",)), paths=("dynamo",))
    assert [case.id for case in planned.cases] == ["a/a"]
    assert plan(make_case("a/b", paths=("aot",)), paths=("dynamo",)).probe_count == 0


def test_the_first_verdicts_come_soon_and_fresh_processes_do_not_wait_for_the_end() -> None:
    cases = (
        make_case("a/forks", paths=("inductor", "dynamo")),
        make_case("a/process", paths=("inductor", "aot"), isolation="process"),
    )
    assert keys(plan(*cases)) == [
        ("a/process", "aot"),
        ("a/forks", "dynamo"),
        ("a/process", "inductor"),
        ("a/forks", "inductor"),
    ]


def test_a_deadline_is_the_cases_own_or_that_of_its_path() -> None:
    case = make_case("a/b", paths=("dynamo", "inductor", "inductor-dynamic"))
    found = {probe.path: probe.deadline_s for probe in plan(case).cells[0].probes}
    assert found == {"dynamo": 30.0, "inductor": 60.0, "inductor-dynamic": 60.0}
    hurried = make_case("a/b", paths=("dynamo", "inductor"), deadline_s=5.0)
    assert {probe.deadline_s for probe in plan(hurried).cells[0].probes} == {5.0}


@pytest.mark.parametrize(
    ("cell", "wants", "asked", "can_fork", "gets"),
    [
        (CPU, "fork", "auto", True, "fork"),
        (CPU, "fork", "fork", True, "fork"),
        (CPU, "fork", "auto", False, "process"),
        (CPU, "fork", "process", True, "process"),
        (CPU, "process", "auto", True, "process"),
        (CUDA, "fork", "auto", True, "process"),
    ],
)
def test_a_probe_forks_only_where_nothing_speaks_against_it(
    cell: Any, wants: str, asked: Literal["auto", "process"], can_fork: bool, gets: str
) -> None:
    case = make_case("a/b", isolation=wants)
    planned = plan(case, cells=(cell,), isolation=asked, can_fork=can_fork)
    assert planned.cells[0].probes[0].isolation == gets


def test_a_cell_that_no_wheel_serves_keeps_its_probes_and_says_why() -> None:
    (cell,) = plan(make_case("a/b"), cells=(make_cell("3.15"),)).cells
    assert cell.impossible is not None
    assert cell.impossible.reason is NotRunReason.NO_WHEEL
    assert len(cell.probes) == 1
    assert plan(make_case("a/b")).cells[0].impossible is None


def reason(cell: Any, **changes: Any) -> tuple[NotRunReason | None, str]:
    probe = Probe(
        cell=cell,
        case=make_case("a/b", **changes),
        path="dynamo",
        deadline_s=1.0,
        isolation="fork",
    )
    return why_not(probe, "3.12.7", "2.4.1+cpu")


def test_why_a_probe_is_not_started() -> None:
    assert reason(CPU) == (None, "")
    assert reason(CPU, python=SpecifierSet(">=3.13")) == (None, "needs Python >=3.13")
    assert reason(CPU, torch=SpecifierSet("<2.4")) == (None, "needs torch <2.4")
    assert reason(CPU, devices=("cuda",))[0] is NotRunReason.NO_DEVICE
    assert reason(CUDA, devices=("cpu",)) == (NotRunReason.WRONG_DEVICE, "the case is for cpu")
    assert reason(CUDA, devices=("cuda",)) == (None, "")
