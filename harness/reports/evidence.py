"""What stands behind one mark: its message, its exception, how to see it again; and marks of one message."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.reports.plain import head, one_line, tail
from harness.results import Cause, CellRecord, GraphBreak, Raised, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

ADOPTED = "adopted"
"""The era of a cell whose interpreter was there before; nothing on another machine builds it again."""

_RUN = "compile-matrix run --fresh --reports reports/again"

MESSAGE_LIMIT = 4_000
OUTPUT_LIMIT = 2_000
BREAKS_SHOWN = 20


def headline(result: Result) -> str:
    """One line that says what happened; "" for a probe that worked without anything to tell."""
    seen = result.observation
    if seen.not_run is not None:
        return one_line(
            f"{seen.not_run.value}: {seen.message}" if seen.message else seen.not_run.value
        )
    if seen.message:
        return one_line(seen.message)
    if seen.raised:
        return one_line(raised_text(seen.raised[0]))
    if seen.difference:
        return one_line(seen.difference)
    if seen.breaks:
        return one_line(seen.breaks[0].reason)
    if seen.signal:
        return one_line(f"ended by {seen.signal}")
    if seen.exit_status:
        return f"exit status {seen.exit_status}"
    return ""


def raised_text(raised: Raised, limit: int = MESSAGE_LIMIT) -> str:
    """An exception as Python's last traceback line shows it: `package.Error: message`."""
    # A built-in is written without its module, as a traceback does.
    kind = one_line(raised.type.removeprefix("builtins."))
    message = head(raised.message, limit)
    return f"{kind}: {message}" if message else kind


def refusal_words(result: Result) -> str:
    """torch's own words in a probe that it refused, whole: what a user reads and searches for."""
    seen = result.observation
    if seen.raised:
        return raised_text(seen.raised[0])
    return head(seen.message, MESSAGE_LIMIT)


def is_refusal(result: Result) -> bool:
    """Whether torch declined to compile anything on this Python."""
    return result.verdict is Verdict.ERROR and result.cause is Cause.PYTHON_UNSUPPORTED


def break_text(graph_break: GraphBreak) -> str:
    """One graph break on one line: its code, its reason and where it stands."""
    where = one_line(graph_break.file)
    if where and graph_break.line:
        where = f"{where}:{graph_break.line}"
    code = f"{one_line(graph_break.code)} " if graph_break.code else ""
    reason = one_line(graph_break.reason) or "no reason given"
    return f"{code}{reason} ({where})" if where else f"{code}{reason}"


def verdict_text(verdict: Verdict | None, cause: Cause | None) -> str:
    """`error (graph-break)`, `full`, or `no baseline`."""
    if verdict is None:
        return "no baseline"
    # `crash` says why by itself.
    if cause is None or cause.value == verdict.value:
        return verdict.value
    return f"{verdict.value} ({cause.value})"


def change_text(result: Result) -> str:
    """What was expected and what was found: `full -> error (graph-break)`."""
    expected = verdict_text(result.expectation.verdict, result.expectation.cause)
    return f"{expected} -> {verdict_text(result.verdict, result.cause)}"


def cell_arguments(cell: CellRecord) -> str:
    """The words of the command line that choose this cell, quoted for a shell."""
    if cell.era == ADOPTED:
        return f"--interpreter /path/to/python{one_line(cell.python)}"
    return f"--cells {shlex.quote(one_line(cell.id))}"


def probe_arguments(case: str, path: str) -> str:
    """The words of the command line that choose one case on one path, quoted for a shell."""
    return f"--cases {shlex.quote(one_line(case))} --paths {shlex.quote(one_line(path))}"


def reproduction(cell: CellRecord, case: str, path: str) -> str:
    """The command that looks at one probe again, whatever is known of it."""
    return f"{_RUN} {cell_arguments(cell)} {probe_arguments(case, path)}"


def describe(result: Result, cell: CellRecord) -> str:
    """All evidence of one result as plain text, what matters most first; bounded to some 15,000 characters."""
    seen = result.observation
    parts = [summary_lines(result, cell)]
    if seen.raised:
        chain = [raised_text(raised) for raised in seen.raised[:5]]
        parts.append("exception:\n" + _indent("\ncaused by ".join(chain)))
        if seen.raised[-1].frame:
            parts.append(f"raised at: {one_line(seen.raised[-1].frame)}")
    if seen.breaks:
        lines = [break_text(graph_break) for graph_break in seen.breaks[:BREAKS_SHOWN]]
        if len(seen.breaks) > BREAKS_SHOWN:
            lines.append(f"and {len(seen.breaks) - BREAKS_SHOWN} more")
        parts.append(f"graph breaks: {len(seen.breaks)}\n" + _indent("\n".join(lines)))
    if seen.difference:
        parts.append("difference from eager:\n" + _indent(head(seen.difference, OUTPUT_LIMIT)))
    ended = ending(result)
    if ended:
        parts.append(f"ended: {ended}")
    if seen.output:
        parts.append("output (tail):\n" + _indent(tail(seen.output, OUTPUT_LIMIT)))
    if seen.traceback:
        parts.append("traceback (tail):\n" + _indent(tail(seen.traceback, OUTPUT_LIMIT)))
    return "\n".join(parts)


def summary_lines(result: Result, cell: CellRecord) -> str:
    """The lines that no report leaves out: verdict, cause, expectation, message, and how to see it again."""
    lines = [f"verdict: {result.verdict.value}"]
    if result.cause is not None:
        lines.append(f"cause: {result.cause.value}")
    expected = verdict_text(result.expectation.verdict, result.expectation.cause)
    lines.append(f"expected: {expected} ({result.standing.value})")
    message = headline(result)
    if message:
        lines.append(f"message: {message}")
    lines.append(f"again: {reproduction(cell, result.case, result.path)}")
    return "\n".join(lines)


def ending(result: Result) -> str:
    """How the process ended, where that is evidence: its signal or its exit status."""
    seen = result.observation
    parts = [f"by {one_line(seen.signal)}"] if seen.signal else []
    if seen.exit_status:
        parts.append(f"with exit status {seen.exit_status}")
    return ", ".join(parts)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was seen: one case on these paths, in every one of these cells."""

    case: str
    paths: tuple[str, ...]
    cells: tuple[str, ...]


def find_places(results: Iterable[Result]) -> tuple[Place, ...]:
    """The marks of the results in as few words as say each of them; in order of appearance."""
    cells: dict[tuple[str, str], list[str]] = {}
    for result in results:
        cells.setdefault((result.case, result.path), []).append(result.cell)
    paths: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (case, path), names in cells.items():
        paths.setdefault((case, tuple(names)), []).append(path)
    return tuple(
        Place(case=case, paths=tuple(names), cells=ids) for (case, ids), names in paths.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageGroup:
    """Results that failed with the same words."""

    verdict: Verdict
    cause: Cause | None
    message: str
    results: tuple[Result, ...]

    @property
    def label(self) -> str:
        return verdict_text(self.verdict, self.cause)


def group_by_message(results: Iterable[Result]) -> tuple[MessageGroup, ...]:
    """The results grouped by verdict, cause and message; the largest group first, then in their order."""
    groups: dict[tuple[Verdict, Cause | None, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.verdict, result.cause, headline(result)), []).append(result)
    found = [
        MessageGroup(verdict=verdict, cause=cause, message=message, results=tuple(members))
        for (verdict, cause, message), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda group: -len(group.results)))
