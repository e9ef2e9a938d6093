"""The short table that a run ends with on a terminal; plain words, also where there is no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.reports.evidence import change_text, headline
from harness.reports.plain import count, one_line
from harness.reports.survey import MAIN_PATHS, Column, Survey, survey, verdict_counts
from harness.results import Findings, Result, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIFFERENCES_SHOWN = 40
_MESSAGE_LIMIT = 160


def render_text(findings: Findings) -> str:
    """What was found, in a screen or two: cells, refusals, differences, and one closing line."""
    laid_out = survey(findings)
    parts = [
        "\n".join(_cell_lines(laid_out)),
        "\n".join(_refusal_lines(laid_out)),
        "\n".join(_difference_lines(laid_out)),
        _closing_line(laid_out),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell_lines(laid_out: Survey) -> Iterator[str]:
    if not laid_out.columns:
        return
    rows = [(one_line(column.cell.id, 60), *_cell_words(column)) for column in laid_out.columns]
    if laid_out.shown:
        rows.insert(0, ("cell", *MAIN_PATHS, "verdicts"))
    # The last words of a row are as wide as they like: its verdicts, or why it was not run.
    widths: dict[int, int] = {}
    for row in rows:
        for place, word in enumerate(row[:-1]):
            widths[place] = max(widths.get(place, 0), len(word))
    for row in rows:
        words = [word.ljust(widths[place]) for place, word in enumerate(row[:-1])]
        yield "  ".join((*words, row[-1]))


def _cell_words(column: Column) -> tuple[str, ...]:
    if not column.is_measured:
        return (f"not run: {one_line(column.why_not_run, _MESSAGE_LIMIT)}",)
    states = (column.states[path].label for path in MAIN_PATHS)
    return (*states, verdict_counts(column.verdicts))


def _refusal_lines(laid_out: Survey) -> Iterator[str]:
    refusals = laid_out.refusals
    if refusals:
        yield "refused, in torch's own words:"
    for words, cells in refusals:
        names = ", ".join(one_line(cell.id, 60) for cell in cells)
        yield f"  {names}: {one_line(words, _MESSAGE_LIMIT)}"


def _difference_lines(laid_out: Survey) -> Iterator[str]:
    if not laid_out.differences:
        return
    totals = ", ".join(
        f"{len(results)} {standing.value}" for standing, results in laid_out.differences
    )
    yield f"differences from what is expected: {totals}"
    found = [result for _, results in laid_out.differences for result in results]
    for result in found[:_DIFFERENCES_SHOWN]:
        yield f"  {difference_line(result)}"
    if len(found) > _DIFFERENCES_SHOWN:
        yield f"  and {len(found) - _DIFFERENCES_SHOWN:,} more, in support.md"


def difference_line(result: Result) -> str:
    """One difference on one line: its class, its probe, what was expected and what was found."""
    probe = f"{one_line(result.cell)} {one_line(result.case)} [{one_line(result.path)}]"
    line = f"{result.standing.value:<7} {probe}: {change_text(result)}"
    message = one_line(headline(result), _MESSAGE_LIMIT)
    # A result better than expected has nothing to explain; its message tells of a break that is left.
    return f"{line}: {message}" if message and result.standing is not Standing.BETTER else line


def _closing_line(laid_out: Survey) -> str:
    if not laid_out.probed:
        return "Nothing was probed: this says nothing of the compiler."
    found = sum(len(results) for _, results in laid_out.differences)
    if found:
        outcome = f"{count(found, 'differs', 'differ')} from what is expected"
    elif laid_out.has_baseline:
        outcome = "all as expected"
    else:
        outcome = "all work; nothing is expected yet (no baseline)"
    cells = f"{count(len(laid_out.shown), 'cell')} measured"
    if laid_out.folded:
        cells += f", {len(laid_out.folded)} not run"
    return f"{count(laid_out.probed, 'probe')} ({cells}): {outcome}."
