"""The evidence of a page's marks: each distinct text once, as much of it as a page may weigh."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.reports.evidence import (
    BREAKS_SHOWN,
    Place,
    break_text,
    change_text,
    ending,
    find_places,
    headline,
    raised_text,
    reproduction,
    verdict_text,
)
from harness.reports.plain import count, head, one_line, tail
from harness.reports.survey import GLYPHS, MEANINGS
from harness.results import CellRecord, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_WHOLE_BUDGET = 300_000
"""Characters of evidence on a page; past it, a mark's evidence is its message alone."""
_BRIEF_BUDGET = 450_000
"""Past this as well, it is its verdict and its cause alone."""

_ENTRY_OVERHEAD = 400
"""What the markup of one entry weighs, roughly."""

_TEXT_LIMIT = 2_500
_PLACES_SHOWN = 6
_PLACES_SHOWN_DETAILED = 100
_CELLS_SHOWN = 12

_LEFT_OUT = "Left out to keep this page light: support.json has the message of every result."


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a mark shows when it is opened: `facts` are (label, line), `texts` are (label, lines)."""

    title: str
    message: str
    facts: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    note: str = ""

    @property
    def size(self) -> int:
        pairs = (*self.facts, *self.texts)
        texts = sum(len(label) + len(text) for label, text in pairs)
        return len(self.title) + len(self.message) + texts + _ENTRY_OVERHEAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """Evidence with its number, the marks that show it, and the command for the first of them."""

    number: int
    evidence: Evidence
    places: tuple[Place, ...]
    more_places: int
    command: str


class Exhibits:
    """Collects the evidence of marks, and numbers it in the order in which it is met."""

    def __init__(self, *, is_detailed: bool) -> None:
        self._places_shown = _PLACES_SHOWN_DETAILED if is_detailed else _PLACES_SHOWN
        self._is_detailed = is_detailed
        self._results: dict[Evidence, list[Result]] = {}
        self._numbers: dict[Evidence, int] = {}
        self._written = 0

    def number(self, result: Result) -> int:
        """The number of a result's evidence, from 1; equal evidence has one number."""
        evidence = self._fitting(result)
        if evidence not in self._numbers:
            self._numbers[evidence] = len(self._numbers) + 1
            self._written += evidence.size
        self._results.setdefault(evidence, []).append(result)
        return self._numbers[evidence]

    def all(self, cells: Mapping[str, CellRecord]) -> list[Exhibit]:
        """Every exhibit by its number."""
        return [
            self._exhibit(number, evidence, cells) for evidence, number in self._numbers.items()
        ]

    def _fitting(self, result: Result) -> Evidence:
        steps: tuple[tuple[Callable[[Result], Evidence], int], ...] = (
            (_whole, _WHOLE_BUDGET),
            (_brief, _BRIEF_BUDGET),
        )
        for make, budget in steps:
            evidence = make(result)
            if evidence in self._numbers or self._written + evidence.size <= budget:
                return evidence
        return Evidence(title=_title(result), message="", note=_LEFT_OUT)

    def _exhibit(self, number: int, evidence: Evidence, cells: Mapping[str, CellRecord]) -> Exhibit:
        results = self._results[evidence]
        places = find_places(results)
        shown = places[: self._places_shown]
        if not self._is_detailed:
            shown = tuple(replace(place, cells=_shortened(place.cells)) for place in shown)
        first = results[0]
        return Exhibit(
            number=number,
            evidence=evidence,
            places=shown,
            more_places=len(places) - len(shown),
            command=reproduction(cells[first.cell], first.case, first.path)
            if first.verdict.is_probed
            else "",
        )


def _shortened(cells: tuple[str, ...]) -> tuple[str, ...]:
    if len(cells) <= _CELLS_SHOWN:
        return cells
    return (*cells[:_CELLS_SHOWN], f"and {len(cells) - _CELLS_SHOWN} more")


def _title(result: Result) -> str:
    return f"{GLYPHS[result.verdict]} {verdict_text(result.verdict, result.cause)}"


def _brief(result: Result) -> Evidence:
    return Evidence(title=_title(result), message=headline(result), note=_LEFT_OUT)


def _whole(result: Result) -> Evidence:
    seen = result.observation
    message = headline(result)
    facts: list[tuple[str, str]] = []
    if result.standing.is_difference:
        facts.append((result.standing.value, change_text(result).replace("->", "→")))
    if seen.graphs or result.verdict is Verdict.UNCOMPILED:
        captured = [count(seen.graphs, "graph"), count(seen.ops, "operation")]
        if seen.recompiles:
            captured.append(count(seen.recompiles, "recompile"))
        facts.append(("captured", ", ".join(captured)))
    ended = ending(result)
    if ended:
        facts.append(("ended", ended))
    texts: list[tuple[str, str]] = []
    if seen.raised:
        chain = "\ncaused by ".join(raised_text(raised, _TEXT_LIMIT) for raised in seen.raised[:4])
        if one_line(chain) != message:
            texts.append(("exception", chain))
        if seen.raised[-1].frame:
            facts.append(("raised at", one_line(seen.raised[-1].frame)))
    if seen.breaks:
        lines = [break_text(graph_break) for graph_break in seen.breaks[:BREAKS_SHOWN]]
        if len(seen.breaks) > BREAKS_SHOWN:
            lines.append(f"and {len(seen.breaks) - BREAKS_SHOWN} more")
        texts.append((count(len(seen.breaks), "graph break"), "\n".join(lines)))
    if seen.difference:
        texts.append(("difference from eager", head(seen.difference, _TEXT_LIMIT)))
    if seen.output:
        texts.append(("output, its end", tail(seen.output, _TEXT_LIMIT)))
    if seen.traceback:
        texts.append(("traceback, its end", tail(seen.traceback, _TEXT_LIMIT)))
    return Evidence(
        title=_title(result),
        message=message or (MEANINGS[result.verdict] if result.verdict is Verdict.FULL else ""),
        facts=tuple(facts),
        texts=tuple(texts),
    )
