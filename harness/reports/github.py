"""What GitHub shows of a run: the summary on a job's page, and annotations beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.reports.evidence import change_text, group_by_message, headline, is_refusal
from harness.reports.markdown import refusal_blocks, seen_in
from harness.reports.markup import block, code, command, prose, table
from harness.reports.plain import count, one_line
from harness.reports.survey import (
    DIFFERENCES,
    GLYPHS,
    MAIN_PATHS,
    Column,
    Survey,
    survey,
    verdict_counts,
)
from harness.reports.text import difference_line
from harness.results import Findings, Result, Standing, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

SUMMARY_LIMIT_BYTES = 60_000
"""Also fits a comment; GitHub drops a summary over 1 MiB whole, without a word."""

ANNOTATIONS_SHOWN = 10
"""GitHub keeps ten of a kind for a step."""

_ROWS_SHOWN = 50
_GROUPS_SHOWN = 20


def render_summary(findings: Findings) -> str:
    """The summary of a job, in Markdown, of at most 60,000 bytes; what was left out is said at its end."""
    laid_out = survey(findings)
    blocks = [
        *_totals(laid_out),
        *_cell_blocks(laid_out),
        *refusal_blocks(laid_out),
        *_difference_blocks(laid_out),
        *_failure_blocks(laid_out),
    ]
    return _fit(blocks, SUMMARY_LIMIT_BYTES)


def annotation_lines(findings: Findings) -> list[str]:
    """Workflow commands for the differences, worse first; at most ten, the last one counting the rest."""
    found = [result for _, results in survey(findings).differences for result in results]
    shown = found if len(found) <= ANNOTATIONS_SHOWN else found[: ANNOTATIONS_SHOWN - 1]
    lines = [_annotation(result) for result in shown]
    if len(found) > len(shown):
        worst = found[len(shown)].standing
        message = f"{len(found) - len(shown):,} more results differ from what is expected"
        lines.append(command(_level(worst), f"{message}; the job summary lists them"))
    return lines


def _annotation(result: Result) -> str:
    message = one_line(headline(result))
    text = f"{change_text(result)}: {message}" if message else change_text(result)
    title = f"{result.standing.value}: {one_line(result.cell)} {one_line(result.case)}"
    return command(_level(result.standing), text, title=f"{title} [{one_line(result.path)}]")


def _level(standing: Standing) -> str:
    return "warning" if standing is Standing.BETTER else "error"


def _fit(blocks: list[str], limit_bytes: int) -> str:
    """The blocks one after another, as many whole ones as fit, and a note when some did not."""
    room = limit_bytes - 200
    kept: list[str] = []
    for position, text in enumerate(blocks):
        room -= len(text.encode()) + 2
        if room < 0:
            left_out = count(len(blocks) - position, "part")
            kept.append(
                f"**Cut here:** {left_out} more would not fit; `support.md` has everything."
            )
            break
        kept.append(text)
    return "\n\n".join(kept) + "\n"


def _totals(laid_out: Survey) -> Iterator[str]:
    yield "## torch.compile support"
    if not laid_out.probed:
        yield "**Nothing was probed: this run says nothing of the compiler.**"
    cells = f"{count(len(laid_out.shown), 'cell')} measured, {len(laid_out.folded)} not run"
    counts = verdict_counts(laid_out.verdicts)
    yield f"{cells}; {count(laid_out.probed, 'probe')}: {counts}."
    differing = {standing: len(results) for standing, results in laid_out.differences}
    words = ", ".join(f"{differing.get(standing, 0)} {standing.value}" for standing in DIFFERENCES)
    total = len(laid_out.findings.results)
    yield f"Against the baseline: **{words}**, of {count(total, 'result')}."
    if total and not laid_out.has_baseline:
        yield "There is no baseline yet: what does not work counts as new."


def _cell_blocks(laid_out: Survey) -> Iterator[str]:
    if laid_out.shown:
        rows = [_cell_row(column) for column in laid_out.shown]
        yield "### Cells"
        for start in range(0, len(rows), _ROWS_SHOWN):
            part = rows[start : start + _ROWS_SHOWN]
            yield "\n".join(table(("Cell", *MAIN_PATHS, "Verdicts", "Differs"), part))
    if laid_out.folded:
        lines = [
            f"- {code(column.cell.id)}: {code(column.why_not_run)}" for column in laid_out.folded
        ]
        yield f"### Not run ({len(lines)})"
        for start in range(0, len(lines), _ROWS_SHOWN):
            yield "\n".join(lines[start : start + _ROWS_SHOWN])


def _cell_row(column: Column) -> tuple[str, ...]:
    differing = sum(result.standing.is_difference for result in column.results)
    states = (column.states[path].label for path in MAIN_PATHS)
    counts = verdict_counts(column.verdicts)
    return (code(column.cell.id), *states, counts, str(differing))


def _difference_blocks(laid_out: Survey) -> Iterator[str]:
    for standing, results in laid_out.differences:
        title = f"### {standing.value.capitalize()} ({len(results)})"
        lines = [code(difference_line(result)) for result in results[:_ROWS_SHOWN]]
        if len(results) > _ROWS_SHOWN:
            lines.append(f"and {len(results) - _ROWS_SHOWN:,} more, in `support.md`")
        yield "\n".join([title, "", *(f"- {line}" for line in lines)])


def _failure_blocks(laid_out: Survey) -> Iterator[str]:
    refused = {column.cell.id for column in laid_out.columns if column.refusals}
    failing = [
        result
        for result in laid_out.findings.results
        if (result.verdict.works is False or result.verdict is Verdict.INVALID)
        # These stand above already, once for the whole cell.
        and not (is_refusal(result) and result.cell in refused)
    ]
    groups = group_by_message(failing)
    if groups:
        yield "### What does not work, by message"
    for group in groups[:_GROUPS_SHOWN]:
        title = f"{len(group.results)} × {GLYPHS[group.verdict]} {prose(group.label)}"
        message = block(group.message) if group.message else "no message"
        yield f"**{title}**\n\n{message}\n\nSeen in {seen_in(group.results)}."
    if len(groups) > _GROUPS_SHOWN:
        left_out = count(len(groups) - _GROUPS_SHOWN, "message")
        yield f"and {left_out} more, in `support.md`"
