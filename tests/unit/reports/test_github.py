"""What GitHub shows: a summary that is never dropped for its size, and commands that stay commands."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from harness.reports import github
from harness.reports.github import SUMMARY_LIMIT_BYTES, annotation_lines, render_summary
from harness.results import Findings, Standing, Verdict
from tests.unit.reports.examples import REFUSALS, make_large, make_result

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

KINDS = ("realistic", "hostile", "nothing", "unprobed")


def with_standings(findings: Findings, standing: Standing) -> Findings:
    """The same, with every result of that standing."""
    results = tuple(dataclasses.replace(result, standing=standing) for result in findings.results)
    return dataclasses.replace(findings, results=results)


def test_totals_cells_differences_and_failures_in_this_order(realistic: Findings) -> None:
    text = render_summary(realistic)
    parts = (
        "189 probes",
        "**1 worse, 1 new, 1 changed, 3 better**, of 216 results",
        "| `3.12-2.3` | refused | refused | refused |",
        "### Not run (3)",
        f"RuntimeError: {REFUSALS['3.12-2.3']}",
        "### Worse (1)",
        "### New (1)",
        "### Changed (1)",
        "### Better (3)",
        "### What does not work, by message",
        "15 × ○ uncompiled (backend-failed)",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_refused_cell_is_told_once(realistic: Findings) -> None:
    assert render_summary(realistic).count(REFUSALS["3.12-2.3"]) == 1


def test_without_a_baseline_it_says_so() -> None:
    failing = make_result("3.12-2.4", "a/b", "dynamo", Verdict.ERROR, standing=Standing.NEW)
    findings = Findings(cells=(), cases=(), results=(failing,), machines=(), generated="")
    assert "There is no baseline yet" in render_summary(findings)


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_fits_and_nothing_in_it_acts(kind: str, request: pytest.FixtureRequest) -> None:
    text = render_summary(request.getfixturevalue(kind))
    assert len(text.encode()) <= SUMMARY_LIMIT_BYTES
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        assert token.type != "html_block"
        inline = [child.content for child in token.children or () if child.type == "html_inline"]
        assert set(inline) <= {"<code>", "</code>"}


def test_a_summary_too_long_is_cut_between_its_parts_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    findings = with_standings(make_large(100, 60, ("dynamo",)), Standing.WORSE)
    whole = render_summary(findings)
    assert len(whole.encode()) <= SUMMARY_LIMIT_BYTES
    assert "and 5,950 more, in `support.md`" in whole
    assert re.search(r"^and \d+ messages more, in", whole, flags=re.MULTILINE)
    monkeypatch.setattr(github, "SUMMARY_LIMIT_BYTES", 8_000)
    cut = render_summary(findings)
    assert len(cut.encode()) <= 8_000
    assert re.search(r"\*\*Cut here:\*\* \d+ parts more would not fit", cut)
    assert cut.count("```") % 2 == 0


def test_annotations_are_ten_at_most_and_worse_first(realistic: Findings) -> None:
    lines = annotation_lines(realistic)
    assert [line.split(" ", maxsplit=1)[0] for line in lines] == ["::error"] * 3 + ["::warning"] * 3
    assert lines[0] == (
        "::error title=worse%3A 3.13-2.6 bytecode/listcomp_break [inductor]::"
        "full -> wrong (wrong-result): output differs from eager"
    )
    many = annotation_lines(with_standings(realistic, Standing.NEW))
    assert len(many) == 10
    assert many[-1] == (
        "::error::207 more results differ from what is expected; the job summary lists them"
    )


def test_annotations_stay_one_line_each(hostile: Findings) -> None:
    lines = annotation_lines(hostile)
    assert len(lines) == 2
    for line in lines:
        assert line.isprintable()
        assert re.fullmatch(r"::error title=[^:,]+::.*", line)
        # A percent sign of the case's own cannot become a line feed.
        assert "%250A" in line or "%" not in line.partition("title=")[2].partition("::")[2]


def test_nothing_that_differs_is_no_annotation(nothing: Findings) -> None:
    assert annotation_lines(nothing) == []


def test_snapshot(realistic: Findings, snapshot_md: SnapshotAssertion) -> None:
    assert render_summary(realistic) == snapshot_md
