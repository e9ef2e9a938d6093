"""What a run learns is written once, however often it is learnt, and from whichever thread."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from harness.journal import Journal, read_records
from harness.recorder import Recorder, counts
from harness.results import CaseRecord, CellRecord, MachineRecord, Observation, Verdict
from tests.unit.worlds import Heard, make_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from harness.results import Record

CELL = CellRecord(
    id="3.12-2.4", python="3.12", torch="2.4.1", device="cpu", platform="linux-x86_64",
    era="release", status="measured", at="2026-12-01T12:00:00Z",
)  # fmt: skip
CASE = CaseRecord(id="a/b", title="?", category="a", kind="run", paths=("dynamo",))
MACHINE = MachineRecord(id="m1", harness="0.1", protocol=1, at="2026-12-01T12:00:00Z")
FOUND = Observation(
    cell="3.12-2.4", case="a/b", path="dynamo", verdict=Verdict.FULL, at="2026-12-01T12:00:00Z"
)
LATER = "2026-12-02T00:00:00Z"


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # no test cuts the power


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.jsonl") as journal:
        yield journal


def recorder(journal: Journal, known: Iterable[Record] = ()) -> tuple[Recorder, Heard]:
    heard = Heard()
    return Recorder(journal, known, heard), heard


def written(journal: Journal) -> tuple[Record, ...]:
    return read_records(journal.path).records


def record_all(recorder: Recorder) -> None:
    recorder.machine(MACHINE)
    recorder.case(CASE)
    recorder.cell(CELL)
    recorder.observation(FOUND)


def test_everything_is_written_in_the_order_in_which_it_is_learnt(journal: Journal) -> None:
    made, _ = recorder(journal)
    record_all(made)
    assert written(journal) == (MACHINE, CASE, CELL, FOUND)


def test_what_is_learnt_twice_in_a_run_is_written_once(journal: Journal) -> None:
    made, heard = recorder(journal)
    record_all(made)
    record_all(made)
    assert len(written(journal)) == 4
    assert [known for *_, known in heard.settled_probes] == [False, True]


def test_what_the_journal_knows_is_not_written_again_only_because_time_has_passed(
    journal: Journal,
) -> None:
    made, heard = recorder(journal, (MACHINE, CASE, CELL, FOUND))
    made.machine(replace(MACHINE, at=LATER))
    made.case(CASE)
    made.cell(replace(CELL, at=LATER))
    made.observation(replace(FOUND, at=LATER))
    assert written(journal) == ()
    assert heard.settled_probes == [("3.12-2.4", "a/b", "dynamo", True)]


def test_what_has_changed_is_written(journal: Journal) -> None:
    made, heard = recorder(journal, (MACHINE, CASE, CELL, FOUND))
    changed = (
        replace(MACHINE, facts={"cores": "4"}, at=LATER),
        replace(CASE, digest="another"),
        replace(CELL, status="not-run", at=LATER),
        replace(FOUND, verdict=Verdict.WRONG, at=LATER),
    )
    made.machine(changed[0])
    made.case(changed[1])
    made.cell(changed[2])
    made.observation(changed[3])
    assert written(journal) == changed
    assert heard.settled_probes == [("3.12-2.4", "a/b", "dynamo", False)]


def test_the_last_that_the_journal_says_counts(journal: Journal) -> None:
    made, _ = recorder(journal, (CELL, replace(CELL, status="not-run"), CELL))
    made.cell(replace(CELL, at=LATER))
    assert written(journal) == ()


def test_a_probe_is_settled_by_this_run_not_by_an_earlier_one(journal: Journal) -> None:
    made, _ = recorder(journal, (FOUND,))
    key = ("3.12-2.4", "a/b", "dynamo")
    assert not made.has(key)
    made.observation(FOUND)
    assert made.has(key)
    assert not made.has(("3.12-2.4", "a/b", "aot"))


def test_progress_is_told_of_cells_too(journal: Journal) -> None:
    made, heard = recorder(journal)
    made.note(make_cell(), "environment")
    made.skipped(3)
    made.cell_done(make_cell())
    assert heard.notes == [("3.12-2.4", "environment")]
    assert heard.skipped_probes == 3
    assert heard.done == ["3.12-2.4"]


def test_many_threads_may_record_at_once(journal: Journal) -> None:
    made, heard = recorder(journal)

    def record(number: int) -> None:
        for path in range(20):
            made.observation(replace(FOUND, case=f"a/{number}", path=f"{path}"))

    threads = [threading.Thread(target=record, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = cast("tuple[Observation, ...]", written(journal))
    assert len({(record.case, record.path) for record in found}) == 160
    assert len(heard.settled_probes) == 160


def test_verdicts_are_counted_in_their_own_order() -> None:
    verdicts = (Verdict.WRONG, Verdict.FULL, Verdict.WRONG)
    found = counts(replace(FOUND, verdict=verdict) for verdict in verdicts)
    assert list(found.items()) == [(Verdict.FULL, 1), (Verdict.WRONG, 2)]
    assert counts(()) == {}
