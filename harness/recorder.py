"""Takes down what a run learns: into the journal, for the progress display, and in numbers."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from harness.results import CaseRecord, CellRecord, MachineRecord, Observation, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.journal import Journal
    from harness.matrix import Cell
    from harness.progress import Progress
    from harness.results import Record

_Dated = TypeVar("_Dated", CellRecord, MachineRecord, Observation)


class Recorder:
    """May be called from any thread. What the journal says already is not written again, so that a run
    which learns nothing new leaves it, and every report, as it was.

    Every method raises HarnessError when the journal cannot be written.
    """

    def __init__(self, journal: Journal, records: Iterable[Record], progress: Progress) -> None:
        self._journal = journal
        self._progress = progress
        self._lock = threading.Lock()
        self._cells: dict[str, CellRecord] = {}
        self._cases: dict[str, CaseRecord] = {}
        self._machines: dict[str, MachineRecord] = {}
        self._observations: dict[tuple[str, str, str], Observation] = {}
        self._settled: set[tuple[str, str, str]] = set()
        for record in records:
            self._remember(record)

    def machine(self, record: MachineRecord) -> None:
        self._write(record, self._machines.get(record.id))

    def case(self, record: CaseRecord) -> None:
        if self._cases.get(record.id) != record:
            self._append(record)

    def cell(self, record: CellRecord) -> None:
        self._write(record, self._cells.get(record.id))

    def observation(self, found: Observation) -> None:
        """A probe is settled: measured now, known from before, or not to be run."""
        key = (found.cell, found.case, found.path)
        known = self._observations.get(key)
        is_known = known is not None and replace(found, at=known.at) == known
        if not is_known:
            self._append(found)
        with self._lock:
            self._settled.add(key)
        self._progress.settled(found, is_known=is_known)

    def has(self, key: tuple[str, str, str]) -> bool:
        """Whether a probe, (cell, case, path), was settled in this run."""
        with self._lock:
            return key in self._settled

    def skipped(self, count: int) -> None:
        """Probes of a cell in which nothing can run."""
        self._progress.skipped(count)

    def note(self, cell: Cell, doing: str) -> None:
        self._progress.note(cell.id, doing)

    def cell_done(self, cell: Cell) -> None:
        self._progress.cell_done(cell.id)

    def _write(self, record: _Dated, known: _Dated | None) -> None:
        if known is None or replace(record, at=known.at) != known:
            self._append(record)

    def _append(self, record: Record) -> None:
        self._journal.append(record)
        with self._lock:
            self._remember(record)

    def _remember(self, record: Record) -> None:
        if isinstance(record, CellRecord):
            self._cells[record.id] = record
        elif isinstance(record, CaseRecord):
            self._cases[record.id] = record
        elif isinstance(record, MachineRecord):
            self._machines[record.id] = record
        else:
            self._observations[(record.cell, record.case, record.path)] = record


def counts(observations: Iterable[Observation]) -> dict[Verdict, int]:
    """How many of each verdict, in the order of the verdicts, those without any left out."""
    found = [observation.verdict for observation in observations]
    return {verdict: found.count(verdict) for verdict in Verdict if verdict in found}
