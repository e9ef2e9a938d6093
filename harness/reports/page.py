"""index.html: the support table as one page that needs nothing else, not even its script.

Each mark is a link to its evidence, which stands further down, once for each distinct text: so a large
table stays light, and a reader without script reaches all of it. With script, a mark opens its evidence
in the row below it, several at once if wanted, and the table can be filtered. Up to `_DETAILED_MARKS`
marks, each mark has an anchor of its own and each evidence lists every mark it stands for; in a larger
table rows and columns have anchors, the script finds the mark, and the lists are cut, saying so. A cell
that nobody could look into is no column but a line with its reason.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from harness.reports.evidence import (
    cell_arguments,
    change_text,
    headline,
    probe_arguments,
    reproduction,
)
from harness.reports.exhibits import Exhibits
from harness.reports.markdown import range_name
from harness.reports.plain import clean, count, head, moment, one_line, tail
from harness.reports.ranges import Range, find_ranges, torch_key, torch_label
from harness.reports.survey import (
    GAP,
    GAP_MEANING,
    GLYPHS,
    MAIN_PATHS,
    MEANINGS,
    STANDING_MEANINGS,
    Column,
    PathState,
    Row,
    State,
    Survey,
    survey,
    verdict_counts,
)
from harness.results import CaseRecord, CellRecord, Findings, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_DETAILED_MARKS = 2_500
_DIFFERENCES_SHOWN = 200
_SOURCE_LIMIT = 6_000
_EVIDENCE_LIMIT = 2_000

_CLASSES: dict[Verdict, str] = {
    Verdict.FULL: "",
    Verdict.PARTIAL: "p",
    Verdict.UNCOMPILED: "u",
    Verdict.WRONG: "w",
    Verdict.ERROR: "e",
    Verdict.CRASH: "c",
    Verdict.TIMEOUT: "t",
    Verdict.OUT_OF_MEMORY: "o",
    Verdict.UNAVAILABLE: "a",
    Verdict.NOT_RUN: "n",
    Verdict.INVALID: "i",
}
"""The class of a mark; none for the commonest, of which a large table holds tens of thousands."""

_STATE_CLASSES: dict[State, str] = {
    State.COMPILES: "f",
    State.IN_PART: "p",
    State.REFUSED: "e",
    State.FAILS: "e",
    State.UNKNOWN: "g",
}
_STATE_GLYPHS: dict[State, str] = {
    State.COMPILES: "✓",
    State.IN_PART: "◐",
    State.REFUSED: "✗",
    State.FAILS: "✗",
    State.UNKNOWN: GAP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """One mark of the table: its class, its words, its evidence's number (0: none) and its anchor."""

    kind: str
    text: str
    standing: str = ""
    exhibit: int = 0
    anchor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableRow:
    anchor: str
    case: CaseRecord
    path: str
    title: str
    arguments: str
    marks: tuple[_Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _GridCell:
    """What one cell can do: its states in words, with the paths they hold for; where to read on."""

    kind: str
    lines: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Pythons against torches for one device, platform and era."""

    caption: str
    torches: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[_GridCell, ...], ...]], ...]


def render_page(findings: Findings) -> str:
    """The page; it makes no request, and its policy forbids any that a text in it might ask for."""
    laid_out = survey(findings)
    marks = sum(len(column.results) for column in laid_out.shown)
    is_detailed = marks <= _DETAILED_MARKS
    exhibits = Exhibits(is_detailed=is_detailed)
    categories = [
        (name, _table_rows(rows, laid_out.shown, exhibits, is_detailed=is_detailed))
        for name, rows in laid_out.groups
    ]
    style, script = _asset("page.css"), _asset("page.js")
    template = _environment().from_string(_asset("page.html.j2"))
    return template.render(
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        laid_out=laid_out,
        findings=findings,
        is_detailed=is_detailed,
        totals=verdict_counts(laid_out.verdicts),
        probes=count(laid_out.probed, "probe"),
        grids=_grids(laid_out),
        ranges=[(_range_name(found), found) for found in find_ranges(laid_out.columns)],
        columns=laid_out.shown,
        categories=categories,
        exhibits=exhibits.all(laid_out.cells),
        differences=_differences(laid_out, is_detailed=is_detailed),
        legend=_legend(laid_out),
        kinds=[(verdict.value, _CLASSES[verdict]) for verdict in laid_out.verdicts],
        cases=_cases(laid_out),
        paths=MAIN_PATHS,
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clean=clean,
        line=one_line,
        titled=_titled,
        row_anchor=_row_anchor,
        cell_anchor=_cell_anchor,
        facts_anchor=_facts_anchor,
        case_anchor=_case_anchor,
        link=_is_link,
        cell_arguments=cell_arguments,
        counts=verdict_counts,
        tail=lambda text: tail(text, _EVIDENCE_LIMIT),
        source=lambda text: head(text, _SOURCE_LIMIT),
        state=_state_words,
        plural=count,
        moment=moment,
    )
    return environment


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A content security policy: this style and this script, and nothing from anywhere."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{digest(style)}'; script-src 'sha256-{digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


# Anchors: `quote` leaves neither `:` nor `=`, so that no id of a case can be taken for another kind.


def _part(text: str) -> str:
    return quote(clean(text), safe="/")


def _row_anchor(case: str, path: str) -> str:
    return f"row:{_part(case)}:{_part(path)}"


def _cell_anchor(cell: str) -> str:
    return f"cell:{_part(cell)}"


def _facts_anchor(cell: str) -> str:
    return f"facts:{_part(cell)}"


def _case_anchor(case: str) -> str:
    return f"case:{_part(case)}"


def _mark_anchor(result: Result) -> str:
    return f"mark:{_part(result.case)}:{_part(result.path)}:{_part(result.cell)}"


def _is_link(text: str) -> bool:
    """Whether a source may become a link: a case can write anything there."""
    return text.startswith(("https://", "http://"))


def _titled(text: str) -> Markup:
    """A title on one line; what stands between double backticks, as docstrings write it, is code."""
    parts = one_line(text).split("``")
    if len(parts) % 2 == 0:
        return Markup.escape(one_line(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else Markup.escape(part)
        for index, part in enumerate(parts)
    )


def _table_rows(
    rows: Sequence[Row], columns: Sequence[Column], exhibits: Exhibits, *, is_detailed: bool
) -> list[_TableRow]:
    found: list[_TableRow] = []
    before = ""
    for row in rows:
        marks = tuple(
            _mark(row.results.get(column.cell.id), exhibits, is_detailed=is_detailed)
            for column in columns
        )
        found.append(
            _TableRow(
                anchor=_row_anchor(row.case.id, row.path),
                case=row.case,
                path=one_line(row.path),
                # A title stands once, with the first path of its case.
                title=row.case.title if row.case.id != before else "",
                arguments=probe_arguments(row.case.id, row.path),
                marks=marks,
            )
        )
        before = row.case.id
    return found


def _mark(result: Result | None, exhibits: Exhibits, *, is_detailed: bool) -> _Mark:
    if result is None:
        return _Mark(kind="g", text=GAP)
    return _Mark(
        kind=_CLASSES[result.verdict],
        text=f"{GLYPHS[result.verdict]} {result.verdict.value}",
        standing=result.standing.value if result.standing.is_difference else "",
        exhibit=exhibits.number(result),
        anchor=_mark_anchor(result) if is_detailed else "",
    )


def _grids(laid_out: Survey) -> list[_Grid]:
    """The gate at a glance: Pythons down, torches across, one grid for each kind of machine."""
    groups: dict[tuple[str, str, str], list[Column]] = {}
    for column in laid_out.columns:
        cell = column.cell
        groups.setdefault((cell.device, cell.platform, cell.era), []).append(column)
    grids: list[_Grid] = []
    for (device, platform, era), columns in groups.items():
        torches = {torch_label(column.cell): column.cell.torch for column in columns}
        labels = tuple(sorted(torches, key=lambda label: torch_key(torches[label])))
        pythons = dict.fromkeys(column.cell.python for column in columns)
        rows = tuple(
            (
                one_line(python),
                tuple(
                    tuple(
                        _grid_cell(column)
                        for column in columns
                        if column.cell.python == python and torch_label(column.cell) == label
                    )
                    for label in labels
                ),
            )
            for python in pythons
        )
        words = (device, platform, f"era {era}" if era not in ("", "release") else "")
        caption = ", ".join(one_line(word) for word in words if word)
        grids.append(_Grid(caption=caption, torches=tuple(map(one_line, labels)), rows=rows))
    return grids


def _grid_cell(column: Column) -> _GridCell:
    if not column.is_measured:
        reason = column.cell.reason.value if column.cell.reason is not None else "not run"
        return _GridCell(kind="n", lines=(f"? {reason}",), target=_facts_anchor(column.cell.id))
    known = {
        path: state for path, state in column.states.items() if state.state is not State.UNKNOWN
    }
    labels = dict.fromkeys(_state_words(state) for state in known.values())
    kinds = dict.fromkeys(_STATE_CLASSES[state.state] for state in known.values())
    if not known:
        lines: tuple[str, ...] = (f"{GAP} {State.UNKNOWN.value}",)
    elif len(labels) == 1:
        whole = len(known) == len(column.states)
        lines = (next(iter(labels)) + ("" if whole else f" ({', '.join(known)})"),)
    else:
        lines = tuple(f"{path} {_state_words(state)}" for path, state in known.items())
    kind = "g" if not kinds else next(iter(kinds)) if len(kinds) == 1 else "p"
    return _GridCell(kind=kind, lines=lines, target=_cell_anchor(column.cell.id))


def _state_words(state: PathState) -> str:
    return f"{_STATE_GLYPHS[state.state]} {state.label}"


def _range_name(found: Range) -> str:
    return one_line(range_name(found))


def _differences(
    laid_out: Survey, *, is_detailed: bool
) -> list[tuple[str, str, int, list[tuple[str, str, str]]]]:
    """Each class: its name, its meaning, how many, and (anchor, probe, what changed) of the first ones."""
    shown = {column.cell.id for column in laid_out.shown}
    found: list[tuple[str, str, int, list[tuple[str, str, str]]]] = []
    for standing, results in laid_out.differences:
        lines: list[tuple[str, str, str]] = []
        for result in results[:_DIFFERENCES_SHOWN]:
            anchor = _mark_anchor(result) if is_detailed else _row_anchor(result.case, result.path)
            if result.cell not in shown:
                anchor = _facts_anchor(result.cell)
            probe = f"{one_line(result.case)} [{one_line(result.path)}] in {one_line(result.cell)}"
            message = headline(result)
            change = change_text(result).replace("->", "→")
            lines.append((anchor, probe, f"{change}: {message}" if message else change))
        found.append((standing.value, STANDING_MEANINGS[standing], len(results), lines))
    return found


def _legend(laid_out: Survey) -> Iterator[tuple[str, str, str]]:
    """(class, mark, meaning) of what stands in the table."""
    for verdict in laid_out.verdicts:
        yield _CLASSES[verdict] or "f", f"{GLYPHS[verdict]} {verdict.value}", MEANINGS[verdict]
    yield "g", GAP, GAP_MEANING


def _cases(laid_out: Survey) -> list[tuple[CaseRecord, list[str], str]]:
    """Every case of the table, its paths there, and the command for the first of its marks."""
    found: dict[str, tuple[CaseRecord, list[str], str]] = {}
    cells: Mapping[str, CellRecord] = laid_out.cells
    for _, rows in laid_out.groups:
        for row in rows:
            first = next(iter(row.results.values()))
            command = reproduction(cells[first.cell], row.case.id, row.path)
            found.setdefault(row.case.id, (row.case, [], command))[1].append(one_line(row.path))
    return list(found.values())
