"""The journal keeps what was written, whatever happens to the run, the disk or the line."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import journal as room
from harness.errors import ExitStatus, HarnessError
from harness.journal import Journal, Probe, fresh, read_records, reusable
from harness.results import (
    CaseRecord,
    CellRecord,
    GraphBreak,
    MachineRecord,
    NotRunReason,
    Observation,
    Raised,
    Record,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

OBSERVATION = Observation(
    cell="3.12-2.4",
    case="bytecode/match_class",
    path="dynamo",
    verdict=Verdict.PARTIAL,
    message="1 graph break: “quoted”\nand a second line",
    environment="e1",
    case_digest="d1",
    protocol=1,
    at="2026-12-01T04:00:00Z",
    seconds=0.25,
    isolation="fork",
    breaks=(GraphBreak(reason="no", code="GB0082", file="x.py", line=3),),
    raised=(Raised(type="torch.X", message="m", bases=("RuntimeError",)),),
)
RECORDS: tuple[Record, ...] = (
    MachineRecord(id="m1", harness="0.1.0", protocol=1, facts={"cores": "2"}),
    CaseRecord(
        id="bytecode/match_class",
        title="Is it?",
        category="bytecode",
        kind="run",
        paths=("dynamo",),
        digest="d1",
        text='line\n"record":"observation"\n',
    ),
    CellRecord(
        id="3.12-2.4",
        python="3.12",
        torch="2.4.1",
        device="cpu",
        platform="linux-x86_64",
        era="release",
        status="not-run",
        reason=NotRunReason.NO_WHEEL,
        packages={"torch": "2.4.1"},
    ),
    OBSERVATION,
)


def observed(number: int, **more: object) -> Observation:
    fields: dict[str, object] = {
        "cell": "c",
        "case": f"x/{number}",
        "path": "aot",
        "verdict": Verdict.FULL,
    }
    return Observation(**{**fields, **more})  # type: ignore[arg-type] # any field at all


def fill(path: Path, *records: Record) -> bytes:
    with Journal.open(path) as journal:
        for record in records:
            journal.append(record)
    return path.read_bytes()


def beside(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir()}


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "journal.jsonl"
    data = fill(path, *RECORDS)
    reading = read_records(path)
    assert reading.records == RECORDS
    assert reading.torn == 0
    assert data.count(b"\n") == len(RECORDS)
    assert all(json.loads(line)["schema"] == 1 for line in data.splitlines())


def test_a_journal_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    before = fill(path, *RECORDS)
    after = fill(path, observed(1))
    assert after.startswith(before)
    assert read_records(path).records == (*RECORDS, observed(1))


def test_several_journals_are_read_one_after_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, path in enumerate(paths):
        fill(path, observed(number))
    assert read_records(paths).records == (observed(0), observed(1))
    assert read_records([]).records == ()


def test_what_is_no_unicode_costs_no_result(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    fill(path, observed(1, output="a\udc80b\u2028\x00"))
    (found,) = read_records(path).records
    assert found == observed(1, output="a?b\u2028\x00")


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_torn_last_line_is_no_error_and_the_next_line_is_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    data = fill(path, observed(1), observed(2))
    path.write_bytes(data[:-cut])
    whole = (observed(1),) if cut > 1 else (observed(1), observed(2))
    assert read_records(path) == room.Reading(records=whole, torn=0)
    fill(path, observed(3))
    assert read_records(path) == room.Reading(records=(*whole, observed(3)), torn=int(cut > 1))


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"{",
        b"12",
        b"[]",
        b"{}",
        b'{"record": 3}',
        b'{"record": "observation"}',
        b'{"record": "observation", "cell": "c", "case": "d", "path": "p", "verdict": "superb"}',
    ],
)
def test_a_line_that_cannot_be_read_is_counted_and_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    data = fill(path, observed(1))
    path.write_bytes(data + line + b"\n\n  \n" + data)
    assert read_records(path) == room.Reading(records=(observed(1), observed(1)), torn=1)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"schema": 2, "record": "observation"}', "schema 2"),
        ('{"schema": 1, "record": "star"}', "record 'star'"),
        ('{"record": "star"}', "record 'star'"),
    ],
)
def test_what_another_version_wrote_is_told(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(HarnessError) as caught:
        read_records(path)
    assert caught.value.render() == (
        f"error: {path}:2: written by another version of compile-matrix "
        f"({what} is unknown to this one)\n  hint: use that version, or begin anew: --fresh"
    )


def test_a_journal_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="there is no such journal"):
        read_records(tmp_path / "journal.jsonl")
    with pytest.raises(HarnessError, match="cannot be read") as caught:
        read_records(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_a_second_run_is_told_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        journal.append(observed(1))
        for reach in (Journal.open, fresh):
            with pytest.raises(HarnessError) as caught:
                reach(path)
            assert caught.value.message.startswith(
                f"another run is writing this journal: process {os.getpid()} on "
            )
            assert "\n" not in caught.value.message
            assert caught.value.hint.startswith("wait until it has ended")
            assert caught.value.status is ExitStatus.USAGE
        journal.append(observed(2))
        assert read_records(path).records == (observed(1), observed(2))
        (tmp_path / "journal.jsonl.holder").unlink()
        with pytest.raises(HarnessError) as caught:
            Journal.open(path)
        assert caught.value.message == "another run is writing this journal"
    fill(path, observed(3))
    assert "journal.jsonl.holder" not in beside(path)


def test_closing_twice_lets_go_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Journal.open(path)
    first.close()
    second = Journal.open(path)
    first.close()
    with pytest.raises(HarnessError, match="another run"):
        Journal.open(path)
    second.close()


def test_fresh_moves_the_journal_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    aside = tmp_path / "journal.previous.jsonl"
    assert fresh(path) is None
    fill(path, observed(1))
    assert fresh(path) == aside
    assert not path.exists()
    fill(path, observed(2))
    assert read_records(aside).records == (observed(1),)
    assert fresh(path) == aside
    assert read_records(aside).records == (observed(2),)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(HarnessError, match="cannot be written") as caught:
        Journal.open(tmp_path / "file" / "journal.jsonl")
    assert caught.value.status is ExitStatus.OUR_FAULT
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(HarnessError, match="cannot be written"):
        Journal.open(tmp_path / "journal.jsonl")
    assert "journal.jsonl.holder" not in beside(tmp_path / "journal.jsonl")


def limited(free_bytes: int, monkeypatch: pytest.MonkeyPatch, code: int) -> Callable[[int], None]:
    """A disk on which so many bytes are left; the function returned changes that."""
    left = [free_bytes]
    write = os.write

    def limited_write(descriptor: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(code, os.strerror(code))
        count = write(descriptor, data[: left[0]])
        left[0] -= count
        return count

    monkeypatch.setattr(os, "write", limited_write)
    return lambda free: left.__setitem__(0, free)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("free_bytes", [0, 1, 100])
def test_a_full_disk_loses_nothing_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, free_bytes: int
) -> None:
    path = tmp_path / "journal.jsonl"
    before = fill(path, *RECORDS)
    with Journal.open(path) as journal:
        journal.append(observed(1))
        room_is = limited(free_bytes, monkeypatch, code)
        for _ in range(2):
            with pytest.raises(HarnessError) as caught:
                journal.append(observed(2))
            assert caught.value.render() == (
                f"error: {path}: the disk is full; 2 results are safe in it\n  hint: make room on "
                "that disk, and give the same command again: it goes on from there"
            )
            assert caught.value.status is ExitStatus.OUR_FAULT
        assert path.read_bytes().startswith(before)
        assert read_records(path).records == (*RECORDS, observed(1))
        room_is(10_000)
        journal.append(observed(3))
    assert read_records(path) == room.Reading(records=(*RECORDS, observed(1), observed(3)), torn=0)


def test_half_a_line_that_cannot_be_cut_off_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        room_is = limited(50, monkeypatch, errno.EIO)
        monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(HarnessError) as caught:
            journal.append(observed(1))
        assert caught.value.message == (
            f"cannot be written: {os.strerror(errno.EIO)}; 0 results are safe in it"
        )
        room_is(10_000)
        journal.append(observed(2))
        journal.append(observed(3))
    assert read_records(path) == room.Reading(records=(observed(2), observed(3)), torn=1)


def test_an_interrupt_in_the_middle_of_a_line_leaves_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def interrupted(descriptor: int, data: bytes) -> int:
        write(descriptor, data[:20])
        raise KeyboardInterrupt

    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", interrupted)
            with pytest.raises(KeyboardInterrupt):
                journal.append(observed(1))
        journal.append(observed(2))
    assert read_records(path) == room.Reading(records=(observed(2),), torn=0)


def test_a_real_limit_of_the_system_is_a_full_disk_too(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    path = tmp_path / "journal.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal.open(path) as journal:
        journal.append(observed(1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 60, hard))
        try:
            with pytest.raises(HarnessError) as caught:
                journal.append(observed(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.message == "the disk is full; 1 result is safe in it"
        journal.append(observed(3))
    assert read_records(path) == room.Reading(records=(observed(1), observed(3)), torn=0)


def test_a_disk_that_takes_back_what_it_accepted_is_told_on_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "journal.jsonl"
    journal = Journal.open(path)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(HarnessError, match="the disk is full"):
        journal.close()
    monkeypatch.undo()
    fill(path, observed(1))


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:

        def work(first: int) -> None:
            for number in range(first, first + 25):
                journal.append(observed(number, output="x" * 5_000))

        threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 100, 25)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    reading = read_records(path)
    cases = sorted(int(r.case[2:]) for r in reading.records if isinstance(r, Observation))
    assert (cases, reading.torn) == (list(range(100)), 0)


def test_what_can_be_reused_is_looked_up_by_all_that_it_depends_on() -> None:
    first = observed(1, case_digest="d", environment="e", protocol=1, seconds=1.0)
    edited = observed(1, case_digest="d2", environment="e", protocol=1)
    again = observed(1, case_digest="d", environment="e", protocol=1, seconds=2.0)
    not_run = observed(2, verdict=Verdict.NOT_RUN, case_digest="d", environment="e")
    known = reusable([*RECORDS[:3], first, edited, again, not_run])
    assert set(known.values()) == {edited, again}
    assert known[Probe("c", "x/1", "aot", "d", "e", 1)] is again
    for other in (
        Probe("c", "x/1", "aot", "other", "e", 1),
        Probe("c", "x/1", "aot", "d", "other", 1),
        Probe("c", "x/1", "aot", "d", "e", 2),
        Probe("c", "x/2", "aot", "d", "e", 0),
    ):
        assert other not in known


WRITER = """
import pathlib, sys
from harness.journal import Journal
from harness.results import Observation, Verdict
with Journal.open(pathlib.Path(sys.argv[1])) as journal:
    for number in range(10**9):
        journal.append(Observation(
            cell="c", case=f"x/{number}", path="aot", verdict=Verdict.FULL, output="x" * 20_000
        ))
        print(number, flush=True)
"""


@pytest.mark.process
def test_a_killed_run_loses_at_most_its_last_line_and_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    argv = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(5):
            assert child.stdout.readline()
        with pytest.raises(HarnessError, match=f"process {child.pid} on"):
            Journal.open(path)
        time.sleep(0.02)
        child.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        told = child.stdout.read().split()
    fill(path, observed(-1))
    reading = read_records(path)
    numbers = [int(r.case[2:]) for r in reading.records if isinstance(r, Observation)]
    assert numbers[:-1] == list(range(len(numbers) - 1))
    assert len(numbers) - 1 > int(told[-1]) if told else len(numbers) > 5
    assert numbers[-1] == -1
    assert reading.torn <= 1
