"""Findings laid out as a table: columns, rows, what compiles in a cell, and what differs."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from harness.reports.evidence import is_refusal, refusal_words
from harness.reports.plain import one_line
from harness.results import CaseRecord, CellRecord, Findings, Result, Standing, Verdict

GATE = "gate"
"""The category of cases that ask whether torch.compile works at all."""

MAIN_PATHS = ("dynamo", "aot", "inductor")

DIFFERENCES = (Standing.WORSE, Standing.NEW, Standing.CHANGED, Standing.BETTER)
"""The classes of a difference, worse first."""

STALE_DAYS = 30
"""A column measured this long before the newest one is marked: it may be another world's."""

GLYPHS: dict[Verdict, str] = {
    Verdict.FULL: "✓",
    Verdict.PARTIAL: "◐",
    Verdict.UNCOMPILED: "○",
    Verdict.WRONG: "≠",
    Verdict.ERROR: "✗",
    Verdict.CRASH: "†",
    Verdict.TIMEOUT: "∞",
    Verdict.OUT_OF_MEMORY: "■",
    Verdict.UNAVAILABLE: "–",
    Verdict.NOT_RUN: "?",
    Verdict.INVALID: "!",
}

MEANINGS: dict[Verdict, str] = {
    Verdict.FULL: "one graph was captured, and values, gradients and side effects match eager",
    Verdict.PARTIAL: "matches eager, with graph breaks",
    Verdict.UNCOMPILED: "matches eager because nothing was compiled: no graph was captured",
    Verdict.WRONG: "ran, and differs from eager",
    Verdict.ERROR: "raised an exception",
    Verdict.CRASH: "the process died",
    Verdict.TIMEOUT: "ended at its deadline",
    Verdict.OUT_OF_MEMORY: "ended at its memory bound",
    Verdict.UNAVAILABLE: "the case needs syntax or an API that this cell does not have",
    Verdict.NOT_RUN: "nobody could look; the reason stands with it",
    Verdict.INVALID: "eager itself fails: the case is at fault, not the compiler",
}

STANDING_MEANINGS: dict[Standing, str] = {
    Standing.WORSE: "the baseline knew better",
    Standing.NEW: "does not work, and no baseline says that this is known",
    Standing.CHANGED: "not the same, but neither better nor worse",
    Standing.BETTER: "better than the baseline knows; accept it, so that it cannot be lost unnoticed",
}

GAP = "·"
GAP_MEANING = "no result: this probe was not part of the run, or the run ended before it"


class State(str, Enum):
    """What a cell, or one path of it, can do at all."""

    COMPILES = "compiles"
    IN_PART = "in part"
    REFUSED = "refused"
    FAILS = "fails"
    UNKNOWN = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathState:
    """What one path of a cell can do, and by which probes we know.

    works, judged: how many of `results` work, and how many there are; each of them says something of the
    compiler.
    """

    state: State
    works: int
    results: tuple[Result, ...]

    @property
    def judged(self) -> int:
        return len(self.results)

    @property
    def label(self) -> str:
        """One or a few words: `compiles`, `in part (2 of 3)`, `fails: cxx-compiler-missing`."""
        if self.state is State.IN_PART:
            return f"in part ({self.works} of {self.judged})"
        if self.state is State.FAILS:
            kinds: set[str] = {
                result.cause.value if result.cause is not None else result.verdict.value
                for result in self.results
            }
            return f"fails: {kinds.pop()}" if len(kinds) == 1 else "fails"
        word: str = self.state.value
        return word


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One cell of the matrix with its results.

    states: by the three main paths. refusals: torch's own words, each text once, where every probe that
    decides was refused. first_day, last_day: of its measurements, `2026-12-01`, or "" without any.
    """

    cell: CellRecord
    results: tuple[Result, ...]
    verdicts: dict[Verdict, int]
    states: dict[str, PathState]
    refusals: tuple[str, ...]
    first_day: str
    last_day: str
    is_stale: bool

    @property
    def is_measured(self) -> bool:
        """Whether anything at all was found out about it; a column without it is only a reason."""
        return any(verdict is not Verdict.NOT_RUN for verdict in self.verdicts)

    @property
    def works(self) -> int:
        return sum(number for verdict, number in self.verdicts.items() if verdict.works)

    @property
    def judged(self) -> int:
        """How many probes say something of the compiler, for or against it."""
        return sum(number for verdict, number in self.verdicts.items() if verdict.works is not None)

    @property
    def days(self) -> str:
        if self.first_day == self.last_day:
            return self.first_day
        return f"{self.first_day} to {self.last_day}"

    @property
    def why_not_run(self) -> str:
        """Why nobody could look, on one line."""
        cell = self.cell
        reasons: list[str] = []
        if cell.reason is not None:
            reasons.append(cell.reason.value)
        for result in self.results:
            reason = result.observation.not_run
            if reason is not None and reason.value not in reasons:
                reasons.append(reason.value)
        if not reasons:
            reasons.append("no probe was finished")
        detail = one_line(cell.detail)
        return f"{', '.join(reasons)}: {detail}" if detail else ", ".join(reasons)

    @property
    def evidence(self) -> str:
        """What an environment left that could not be built, or a worker that did not start."""
        if self.cell.evidence:
            return self.cell.evidence
        return next(
            (result.observation.output for result in self.results if result.observation.output), ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case on one path. results: by the id of the cell."""

    case: CaseRecord
    path: str
    results: Mapping[str, Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Findings as a table.

    columns: every cell, in order; `shown` have a mark, `folded` are only a reason. groups: category → its
    rows; the gate comes first. without_result: `case [path]` that no cell has a result of. differences:
    results of each class that has any, worse first. has_baseline: whether anything was expected at all.
    """

    findings: Findings
    columns: tuple[Column, ...]
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    without_result: tuple[str, ...]
    differences: tuple[tuple[Standing, tuple[Result, ...]], ...]
    has_baseline: bool

    @property
    def shown(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.is_measured)

    @property
    def folded(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.is_measured)

    @property
    def cells(self) -> dict[str, CellRecord]:
        return {column.cell.id: column.cell for column in self.columns}

    @property
    def verdicts(self) -> dict[Verdict, int]:
        return _count_verdicts(self.findings.results)

    @property
    def probed(self) -> int:
        return sum(result.verdict.is_probed for result in self.findings.results)

    @property
    def refusals(self) -> tuple[tuple[str, tuple[CellRecord, ...]], ...]:
        """Each text with which torch refused, and the cells in which it did."""
        found: dict[str, list[CellRecord]] = {}
        for column in self.columns:
            for words in column.refusals:
                found.setdefault(words, []).append(column.cell)
        return tuple((words, tuple(cells)) for words, cells in found.items())


def survey(findings: Findings) -> Survey:
    """Lay findings out; a cell or a case that results name and no record describes is laid out as well."""
    by_cell: dict[str, list[Result]] = {cell.id: [] for cell in findings.cells}
    for result in findings.results:
        by_cell.setdefault(result.cell, []).append(result)
    cases = _all_cases(findings)
    columns = tuple(
        _column(cell, by_cell[cell.id], cases, findings.generated)
        for cell in (*findings.cells, *_unknown_cells(findings))
    )
    groups, without_result = _rows(cases.values(), findings.results)
    return Survey(
        findings=findings,
        columns=columns,
        groups=groups,
        without_result=without_result,
        differences=_differences(findings.results),
        has_baseline=any(result.expectation.verdict is not None for result in findings.results),
    )


def verdict_counts(verdicts: Mapping[Verdict, int]) -> str:
    """`38 full, 2 partial, 1 error`, in the order of the verdicts; "none" for none."""
    words = [
        f"{verdicts[verdict]:,} {verdict.value}" for verdict in Verdict if verdicts.get(verdict)
    ]
    return ", ".join(words) or "none"


def _count_verdicts(results: Iterable[Result]) -> dict[Verdict, int]:
    counts = Counter(result.verdict for result in results)
    return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}


def _all_cases(findings: Findings) -> dict[str, CaseRecord]:
    cases = {case.id: case for case in findings.cases}
    for result in findings.results:
        if result.case not in cases:
            category = result.case.rpartition("/")[0]
            cases[result.case] = CaseRecord(
                id=result.case, title="", category=category, kind="run", paths=()
            )
    return cases


def _unknown_cells(findings: Findings) -> list[CellRecord]:
    known = {cell.id for cell in findings.cells}
    names = dict.fromkeys(result.cell for result in findings.results if result.cell not in known)
    return [
        CellRecord(id=name, python="", torch="", device="", platform="", era="", status="measured")
        for name in names
    ]


def _column(
    cell: CellRecord, results: Sequence[Result], cases: Mapping[str, CaseRecord], newest: str
) -> Column:
    judged = [result for result in results if result.verdict.works is not None]
    gate = [result for result in judged if cases[result.case].category == GATE]
    deciding = gate or judged
    refusals: tuple[str, ...] = ()
    if deciding and all(map(is_refusal, deciding)):
        refusals = tuple(dict.fromkeys(map(refusal_words, deciding)))
    days = sorted({at[:10] for result in results if (at := result.observation.at)})
    first, last = (days[0], days[-1]) if days else (cell.at[:10], cell.at[:10])
    return Column(
        cell=cell,
        results=tuple(results),
        verdicts=_count_verdicts(results),
        states={path: _path_state(path, gate, judged) for path in MAIN_PATHS},
        refusals=refusals,
        first_day=first,
        last_day=last,
        is_stale=_days_between(first, newest[:10]) > STALE_DAYS,
    )


def _path_state(path: str, gate: Iterable[Result], judged: Iterable[Result]) -> PathState:
    """What a path can do: by the gate's probes on it, by all probes on it where the gate has none."""
    results = tuple(result for result in gate if result.path == path)
    if not results:
        results = tuple(result for result in judged if result.path == path)
    works = sum(result.verdict.works is True for result in results)
    if not results:
        state = State.UNKNOWN
    elif works == len(results):
        state = State.COMPILES
    elif works:
        state = State.IN_PART
    elif all(map(is_refusal, results)):
        state = State.REFUSED
    else:
        state = State.FAILS
    return PathState(state=state, works=works, results=results)


def _days_between(first: str, last: str) -> int:
    try:
        return (datetime.date.fromisoformat(last) - datetime.date.fromisoformat(first)).days
    except ValueError:
        return 0


def _rows(
    cases: Iterable[CaseRecord], results: Iterable[Result]
) -> tuple[tuple[tuple[str, tuple[Row, ...]], ...], tuple[str, ...]]:
    found: dict[tuple[str, str], dict[str, Result]] = {}
    paths: dict[str, dict[str, None]] = {}
    for result in results:
        found.setdefault((result.case, result.path), {})[result.cell] = result
        paths.setdefault(result.case, {})[result.path] = None
    groups: dict[str, list[Row]] = {}
    without_result: list[str] = []
    for case in sorted(cases, key=lambda case: (case.category != GATE, case.category, case.id)):
        others = sorted(path for path in paths.get(case.id, ()) if path not in case.paths)
        for path in (*case.paths, *others):
            marks = found.get((case.id, path))
            if marks is None:
                without_result.append(f"{case.id} [{path}]")
            else:
                row = Row(case=case, path=path, results=marks)
                groups.setdefault(case.category, []).append(row)
    return tuple((name, tuple(rows)) for name, rows in groups.items()), tuple(without_result)


def _differences(results: Iterable[Result]) -> tuple[tuple[Standing, tuple[Result, ...]], ...]:
    found: dict[Standing, list[Result]] = {standing: [] for standing in DIFFERENCES}
    for result in results:
        if result.standing.is_difference:
            found[result.standing].append(result)
    return tuple((standing, tuple(members)) for standing, members in found.items() if members)
