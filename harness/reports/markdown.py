"""support.md: the support table for people, pasteable on GitHub: what compiles first, then every mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.reports.evidence import (
    BREAKS_SHOWN,
    MessageGroup,
    break_text,
    ending,
    find_places,
    group_by_message,
    raised_text,
    reproduction,
)
from harness.reports.markup import block, code, prose, table
from harness.reports.plain import count, head, moment, one_line, tail
from harness.reports.ranges import Range, find_ranges
from harness.reports.survey import (
    GAP,
    GAP_MEANING,
    GLYPHS,
    MAIN_PATHS,
    MEANINGS,
    STANDING_MEANINGS,
    Column,
    Row,
    Survey,
    survey,
    verdict_counts,
)
from harness.reports.text import difference_line
from harness.results import Findings, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_NOTES_SHOWN = 150
_MARKS_SHOWN = 12
_DIFFERENCES_SHOWN = 200
_MESSAGE_LIMIT = 1_500
_EVIDENCE_LIMIT = 1_000


def render_markdown(findings: Findings) -> str:
    """The whole table with its evidence, in GitHub's Markdown."""
    laid_out = survey(findings)
    groups = group_by_message(_marks_to_explain(laid_out))
    notes = _number_notes(groups)
    blocks = [
        "# torch.compile support table",
        *_introduction(laid_out),
        *_summary(laid_out),
        *_ranges(laid_out),
        *_tables(laid_out, notes),
        *_differences(laid_out),
        *_not_run(laid_out),
        *_evidence(laid_out, groups),
        *_origin(laid_out),
    ]
    return "\n\n".join(blocks) + "\n"


def _marks_to_explain(laid_out: Survey) -> Iterator[Result]:
    """Every mark that stands in the table and is not simply `full`."""
    for column in laid_out.shown:
        yield from (result for result in column.results if result.verdict is not Verdict.FULL)


def _number_notes(groups: Iterable[MessageGroup]) -> dict[tuple[str, str, str], str]:
    """The note of each result that has one: (cell, case, path) → `n3`."""
    return {
        (result.cell, result.case, result.path): f"n{number}" if number <= _NOTES_SHOWN else ""
        for number, group in enumerate(groups, start=1)
        for result in group.results
    }


def _introduction(laid_out: Survey) -> Iterator[str]:
    if not laid_out.probed:
        yield "**Nothing was probed: this table says nothing of the compiler.**"
    cells = f"{count(len(laid_out.shown), 'cell')} measured, {len(laid_out.folded)} not run"
    newest = laid_out.findings.generated
    when = f" Newest measurement: {prose(moment(newest))}." if newest else ""
    counts = verdict_counts(laid_out.verdicts)
    yield f"{cells}; {count(laid_out.probed, 'probe')}: {counts}.{when}"
    yield (
        "A *cell* is one environment, named by its Python and its torch. A mark is what was measured in it; "
        "a gap is not a no."
    )


def _summary(laid_out: Survey) -> Iterator[str]:
    if not laid_out.shown:
        return
    yield "## What compiles where"
    rows = [_summary_row(column) for column in laid_out.shown]
    head_row = ("Cell", "Python", "torch", *MAIN_PATHS, "Probes that work", "Measured")
    yield "\n".join(table(head_row, rows))
    yield from refusal_blocks(laid_out)


def refusal_blocks(laid_out: Survey) -> Iterator[str]:
    """Each text with which torch refused a cell, whole, below the cells that it refused."""
    for position, (words, cells) in enumerate(laid_out.refusals):
        names = ", ".join(code(cell.id) for cell in cells)
        text = f"{names}:\n\n{block(words)}"
        yield f"### Refused, in torch's own words\n\n{text}" if not position else text


def _summary_row(column: Column) -> tuple[str, ...]:
    cell = column.cell
    states = (code_free(column.states[path].label) for path in MAIN_PATHS)
    stale = " (stale)" if column.is_stale else ""
    return (
        code(cell.id),
        prose(cell.python_version or cell.python),
        prose(cell.torch_version or cell.torch),
        *states,
        f"{column.works} of {column.judged}",
        f"{prose(column.days)}{stale}",
    )


def code_free(label: str) -> str:
    """A state's own words need no escaping; bold where it compiles, so that the eye finds it."""
    return f"**{label}**" if label == "compiles" else label


def _ranges(laid_out: Survey) -> Iterator[str]:
    ranges = find_ranges(laid_out.columns)
    if not ranges:
        return
    yield "## Which torch a Python needs"
    head_row = (
        "Python",
        "Paths",
        "First torch seen to compile",
        "Last torch seen to fail",
        "Compiles in",
        "In part in",
        "Fails in",
        "Nobody measured",
    )
    yield "\n".join(table(head_row, map(_range_row, ranges)))


def _range_row(found: Range) -> tuple[str, ...]:
    return (
        prose(range_name(found)),
        ", ".join(found.paths),
        prose(found.first_compiles or "none"),
        prose(found.last_fails or "none"),
        prose("; ".join(found.compiles) or "none"),
        prose("; ".join(found.in_part) or "none"),
        prose("; ".join(found.fails) or "none"),
        prose("; ".join(found.gaps) or "none"),
    )


def range_name(found: Range) -> str:
    """`3.12`, and whatever is not the ordinary CPU cell of a release's era: `3.12 cuda today`."""
    device = found.device if found.device != "cpu" else ""
    era = found.era if found.era != "release" else ""
    platform = found.platform if found.platform != "linux-x86_64" else ""
    return " ".join(word for word in (found.python, device, era, platform) if word)


def _tables(laid_out: Survey, notes: Mapping[tuple[str, str, str], str]) -> Iterator[str]:
    if not laid_out.groups or not laid_out.shown:
        return
    yield "## The table"
    yield "\n".join(_legend(laid_out))
    columns = laid_out.shown
    head_row = ("Case", "Path", *(code(column.cell.id) for column in columns))
    for category, rows in laid_out.groups:
        yield f"### {prose(category) or 'without a category'}"
        yield "\n".join(table(head_row, _table_rows(rows, columns, notes)))
    if laid_out.without_result:
        names = ", ".join(map(code, laid_out.without_result[:_DIFFERENCES_SHOWN]))
        more = len(laid_out.without_result) - _DIFFERENCES_SHOWN
        tail_words = f", and {more} more" if more > 0 else ""
        yield f"Without a result in any cell, and therefore not in the table: {names}{tail_words}."


def _legend(laid_out: Survey) -> Iterator[str]:
    for verdict in laid_out.verdicts:
        yield f"- {GLYPHS[verdict]} {verdict.value}: {MEANINGS[verdict]}"
    yield f"- {GAP}: {GAP_MEANING}"
    for standing, _ in laid_out.differences:
        yield f"- **{standing.value}**: {STANDING_MEANINGS[standing]}"
    yield "- n1, n2, …: the note under *Evidence*"


def _table_rows(
    rows: Iterable[Row], columns: Iterable[Column], notes: Mapping[tuple[str, str, str], str]
) -> Iterator[tuple[str, ...]]:
    before = ""
    for row in rows:
        title = prose(row.case.title)
        # The title stands once, with the first path of its case.
        label = (
            f"{code(row.case.id)}<br>{title}"
            if title and row.case.id != before
            else code(row.case.id)
        )
        before = row.case.id
        marks = (_mark(row.results.get(column.cell.id), notes) for column in columns)
        yield (label, prose(row.path), *marks)


def _mark(result: Result | None, notes: Mapping[tuple[str, str, str], str]) -> str:
    if result is None:
        return GAP
    words = [GLYPHS[result.verdict], result.verdict.value]
    note = notes.get((result.cell, result.case, result.path))
    if note:
        words.append(note)
    if result.standing.is_difference:
        words.append(f"**{result.standing.value}**")
    return " ".join(words)


def _differences(laid_out: Survey) -> Iterator[str]:
    yield "## Differences from the baseline"
    total = len(laid_out.findings.results)
    if not laid_out.differences:
        yield f"None, of {count(total, 'result')}."
    elif not laid_out.has_baseline:
        yield "There is no baseline yet: what does not work counts as new."
    for standing, results in laid_out.differences:
        lines = [f"- {code(difference_line(result))}" for result in results[:_DIFFERENCES_SHOWN]]
        if len(results) > _DIFFERENCES_SHOWN:
            lines.append(f"- and {len(results) - _DIFFERENCES_SHOWN:,} more, in `support.json`")
        title = f"**{standing.value.capitalize()}** ({len(results)} of {total:,})"
        yield f"{title}: {STANDING_MEANINGS[standing]}."
        yield "\n".join(lines)


def _not_run(laid_out: Survey) -> Iterator[str]:
    if not laid_out.folded:
        return
    yield "## Not run"
    yield "Nobody could look into these cells; that is no verdict on them."
    yield "\n".join(
        f"- {code(column.cell.id)}: {prose(column.why_not_run)}" for column in laid_out.folded
    )
    seen: dict[str, list[str]] = {}
    for column in laid_out.folded:
        if column.evidence:
            seen.setdefault(column.evidence, []).append(column.cell.id)
    for text, names in list(seen.items())[:_MARKS_SHOWN]:
        yield f"{', '.join(map(code, names))}:\n\n{block(tail(text, _EVIDENCE_LIMIT))}"
    if len(seen) > _MARKS_SHOWN:
        yield f"The evidence of {len(seen) - _MARKS_SHOWN} more is in `junit.xml`."


def _evidence(laid_out: Survey, groups: tuple[MessageGroup, ...]) -> Iterator[str]:
    if not groups:
        return
    yield "## Evidence"
    yield "Marks that say the same are one note, the largest first; what is shown is its first mark's."
    for number, group in enumerate(groups[:_NOTES_SHOWN], start=1):
        yield "\n\n".join(_note(laid_out, number, group))
    if len(groups) > _NOTES_SHOWN:
        left_out = count(len(groups) - _NOTES_SHOWN, "message")
        yield f"{left_out} more are left out here; `support.json` has the message of every result."


def _note(laid_out: Survey, number: int, group: MessageGroup) -> Iterator[str]:
    yield f"**n{number}** {GLYPHS[group.verdict]} {prose(group.label)}, {count(len(group.results), 'mark')}"
    first = group.results[0]
    text = _note_text(first, group.message)
    if text:
        yield block(text)
    yield f"Seen in {seen_in(group.results)}."
    if first.verdict.is_probed:
        cell = laid_out.cells[first.cell]
        yield f"To see it again: {code(reproduction(cell, first.case, first.path))}"


def seen_in(results: Iterable[Result]) -> str:
    """Where something was seen, in Markdown; at most a dozen cases, and a dozen cells of each."""
    found = find_places(results)
    words = [
        f"{code(place.case)} on {', '.join(map(prose, place.paths))} in {_listed(place.cells)}"
        for place in found[:_MARKS_SHOWN]
    ]
    more = len(found) - _MARKS_SHOWN
    if more > 0:
        words.append(f"and {more:,} more")
    return "; ".join(words)


def _listed(names: Sequence[str]) -> str:
    words = ", ".join(map(code, names[:_MARKS_SHOWN]))
    more = len(names) - _MARKS_SHOWN
    return f"{words} and {more:,} more" if more > 0 else words


def _note_text(result: Result, message: str) -> str:
    """The evidence of a note's first mark: the message, and what it does not already say."""
    seen = result.observation
    parts = [message] if message else []
    if seen.raised:
        text = raised_text(seen.raised[0], _MESSAGE_LIMIT)
        if one_line(text) != message:
            parts.append(text)
        if len(seen.raised) > 1:
            parts.append(f"caused by {raised_text(seen.raised[-1], _MESSAGE_LIMIT)}")
    breaks = seen.breaks[:BREAKS_SHOWN]
    parts.extend(f"graph break: {break_text(graph_break)}" for graph_break in breaks)
    if len(seen.breaks) > BREAKS_SHOWN:
        parts.append(f"and {len(seen.breaks) - BREAKS_SHOWN} more graph breaks")
    difference = head(seen.difference, _MESSAGE_LIMIT)
    if difference and one_line(difference) != message:
        parts.append(difference)
    ended = ending(result)
    if ended and ended not in message:
        parts.append(f"ended {ended}")
    if seen.output and result.verdict in (Verdict.CRASH, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY):
        parts.append(tail(seen.output, _EVIDENCE_LIMIT))
    return "\n".join(parts)


def _origin(laid_out: Survey) -> Iterator[str]:
    if not laid_out.findings.machines:
        return
    yield "## Where this was measured"
    lines = []
    for machine in laid_out.findings.machines:
        facts = "; ".join(f"{name}: {value}" for name, value in sorted(machine.facts.items()))
        version = f"harness {prose(machine.harness)}"
        lines.append(f"- {code(machine.id)}, {version}: {prose(facts)}")
    yield "\n".join(lines)
