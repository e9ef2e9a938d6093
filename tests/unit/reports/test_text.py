"""The table at the end of a run, on any terminal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from harness.reports.text import render_text
from harness.results import Findings, Standing, Verdict
from tests.unit.reports.examples import REFUSALS, make_cell, make_result

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def test_each_cell_has_its_states_and_verdicts(realistic: Findings) -> None:
    lines = render_text(realistic).splitlines()
    assert [line.split()[0] for line in lines[1:12]] == [cell.id for cell in realistic.cells]
    assert lines[0].split() == ["cell", "dynamo", "aot", "inductor", "verdicts"]
    assert lines[1].split()[1:4] == ["compiles"] * 3
    assert lines[2].endswith("1 full, 23 error")
    assert "not run: no CUDA device" in lines[6]


def test_refusals_are_told_in_torchs_own_words(realistic: Findings) -> None:
    text = render_text(realistic)
    for cell, words in REFUSALS.items():
        assert f"  {cell}: RuntimeError: {words}\n" in text


def test_differences_have_a_line_each_up_to_forty(realistic: Findings) -> None:
    text = render_text(realistic)
    assert "differences from what is expected: 1 worse, 1 new, 1 changed, 3 better\n" in text
    assert "  better  3.13-2.15 bytecode/match_class [aot]: partial -> full\n" in text
    results = tuple(dataclasses.replace(r, standing=Standing.WORSE) for r in realistic.results)
    many = render_text(dataclasses.replace(realistic, results=results))
    assert many.count("\n  worse ") == 40
    assert "  and 176 more, in support.md\n" in many


def test_the_last_line_says_how_it_went(realistic: Findings) -> None:
    assert render_text(realistic).splitlines()[-1] == (
        "189 probes (8 cells measured, 3 not run): 6 differ from what is expected."
    )
    cell = make_cell("3.12-2.4", "2.4.1")
    works = make_result(cell.id, "a/b", "dynamo")
    findings = Findings(cells=(cell,), cases=(), results=(works,), machines=(), generated="")
    assert render_text(findings).endswith("1 probe (1 cell measured): all as expected.\n")
    unknown = dataclasses.replace(works, expectation=type(works.expectation)())
    findings = dataclasses.replace(findings, results=(unknown,))
    assert render_text(findings).endswith("nothing is expected yet (no baseline).\n")


@pytest.mark.parametrize("kind", ["nothing", "unprobed"])
def test_where_nothing_was_probed_it_never_looks_good(
    kind: str, request: pytest.FixtureRequest
) -> None:
    text = render_text(request.getfixturevalue(kind))
    assert text.endswith("Nothing was probed: this says nothing of the compiler.\n")
    assert "dynamo" not in text


def test_a_result_of_every_verdict_is_counted(realistic: Findings) -> None:
    text = render_text(realistic)
    shown = {cell.id for cell in realistic.cells if cell.status == "measured"}
    found = {result.verdict for result in realistic.results if result.cell in shown}
    assert found == set(Verdict) - {Verdict.NOT_RUN}
    for verdict in found:
        assert f" {verdict.value}" in text


def test_nothing_in_it_acts_on_a_terminal(hostile: Findings) -> None:
    assert all(line.isprintable() for line in render_text(hostile).splitlines())


def test_snapshot(realistic: Findings, snapshot_txt: SnapshotAssertion) -> None:
    assert render_text(realistic) == snapshot_txt
