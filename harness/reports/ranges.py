"""On which releases of torch a Python compiles: intervals of what was measured, and the gaps between.

Nothing is inherited: an interval joins only neighbouring releases that were each measured, a release that
nobody looked at is named as a gap, and several intervals stay several, since support comes and goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.reports.survey import MAIN_PATHS, Column, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.results import CellRecord

_NUMBER = re.compile(r"\d+")
_FAILING = (State.FAILS, State.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What one Python does over the releases of torch, on one device and platform, in one era.

    paths: the main paths that this holds for. compiles, in_part, fails: intervals (`2.1–2.4`, `2.6`).
    first_compiles: the lowest release seen to compile. last_fails: the highest seen not to. gaps: what
    nobody measured between the lowest and the highest cell, with the reason (`2.5 (no wheel)`).
    """

    python: str
    device: str
    platform: str
    era: str
    paths: tuple[str, ...]
    compiles: tuple[str, ...]
    in_part: tuple[str, ...]
    fails: tuple[str, ...]
    first_compiles: str
    last_fails: str
    gaps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """One release of torch: what a path of it does; reason: why that is not known, else empty."""

    key: tuple[int, ...]
    label: str
    state: State
    reason: str


def torch_label(cell: CellRecord) -> str:
    """How a cell's torch is called: `2.4` for the series' default patch, else in full."""
    series = ".".join(cell.torch.split(".")[:2])
    words = cell.id.split("-")
    return series if len(words) > 1 and words[1] == series else cell.torch


def torch_key(version: str) -> tuple[int, ...]:
    """A key that sorts torch's releases: the numbers of the version, without its local part."""
    return tuple(int(number) for number in _NUMBER.findall(version.partition("+")[0]))


def find_ranges(columns: Iterable[Column]) -> tuple[Range, ...]:
    """Every Python of the columns, in their order; paths that agree share one range."""
    groups: dict[tuple[str, str, str, str], list[Column]] = {}
    for column in columns:
        cell = column.cell
        key = (cell.python, cell.device, cell.platform, cell.era)
        groups.setdefault(key, []).append(column)
    ranges: list[Range] = []
    for (python, device, platform, era), members in groups.items():
        members.sort(key=lambda column: torch_key(column.cell.torch))
        paths: dict[tuple[_Point, ...], list[str]] = {}
        for path in MAIN_PATHS:
            points = tuple(_point(column, path) for column in members)
            if any(point.state is not State.UNKNOWN for point in points):
                paths.setdefault(points, []).append(path)
        for points, names in paths.items():
            compiles = _labels(points, (State.COMPILES,))
            fails = _labels(points, _FAILING)
            found = Range(
                python=python,
                device=device,
                platform=platform,
                era=era,
                paths=tuple(names),
                compiles=_intervals(points, (State.COMPILES,)),
                in_part=_intervals(points, (State.IN_PART,)),
                fails=_intervals(points, _FAILING),
                first_compiles=compiles[0] if compiles else "",
                last_fails=fails[-1] if fails else "",
                gaps=_gaps(points),
            )
            ranges.append(found)
    return tuple(ranges)


def _point(column: Column, path: str) -> _Point:
    state = column.states[path].state
    reason = ""
    if state is State.UNKNOWN:
        known = column.cell.reason
        reason = known.value if known is not None else "not measured"
    return _Point(
        key=torch_key(column.cell.torch), label=torch_label(column.cell), state=state, reason=reason
    )


def _labels(points: Iterable[_Point], states: Sequence[State]) -> list[str]:
    return [point.label for point in points if point.state in states]


def _intervals(points: Iterable[_Point], states: Sequence[State]) -> tuple[str, ...]:
    runs: list[list[_Point]] = []
    before: _Point | None = None
    for point in points:
        if point.state in states:
            joins = before is not None and before.state in states and not _skipped(before, point)
            if joins:
                runs[-1].append(point)
            else:
                runs.append([point])
        before = point
    return tuple(_span(run[0].label, run[-1].label) for run in runs)


def _gaps(points: Sequence[_Point]) -> tuple[str, ...]:
    """Releases that nobody measured; neighbours with the same reason become one span."""
    gaps: list[tuple[str, str, str]] = []
    before: _Point | None = None
    for point in points:
        skipped = _skipped(before, point) if before is not None else ""
        if skipped:
            gaps.append((skipped, "", "not in this run"))
        if point.reason:
            last = gaps[-1] if gaps else None
            joins = before is not None and before.reason == point.reason and not skipped
            if joins and last is not None:
                gaps[-1] = (last[0], point.label, point.reason)
            else:
                gaps.append((point.label, point.label, point.reason))
        before = point
    return tuple(f"{_span(first, last)} ({reason})" for first, last, reason in gaps)


def _skipped(before: _Point, point: _Point) -> str:
    """The series between two points that neither is of, `2.7–2.14`; "" where they are neighbours."""
    if len(before.key) < 2 or len(point.key) < 2:
        return ""
    if before.key[0] != point.key[0]:
        return f"after {before.label}, before {point.label}"
    first, last = before.key[1] + 1, point.key[1] - 1
    return _span(f"{before.key[0]}.{first}", f"{before.key[0]}.{last}") if first <= last else ""


def _span(first: str, last: str) -> str:
    return f"{first}–{last}" if last and first != last else first
