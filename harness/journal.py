"""The journal: what was measured, a line of JSON for each record, appended and never rewritten.

A kill at any moment loses at most the line that was being written. What stands in it can be read while
a run is writing, and journals of several machines are merged by reading one after the other.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from filelock import FileLock, Timeout
from pydantic import Field, TypeAdapter, ValidationError

from harness.errors import ExitStatus, HarnessError
from harness.results import CaseRecord, CellRecord, MachineRecord, Observation, Record, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from typing_extensions import Self

SCHEMA = 1
"""Version of the lines, written into each: raised when an older harness would misread them."""

_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="record")])
_KINDS = {
    part.default
    for kind in (Observation, CellRecord, CaseRecord, MachineRecord)
    for part in fields(kind)
    if part.name == "record"
}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would write \r\n
_OBSERVATION = b'"record":"observation"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What journals hold, in the order of their lines.

    torn: how many lines in the middle could not be read. The end of a run that was killed, as the last
    line of a journal, is not counted: it is no surprise.
    """

    records: tuple[Record, ...]
    torn: int


@dataclass(slots=True)
class Journal:
    """An open journal, which nobody else writes. `append` may be called from any thread."""

    path: Path
    _descriptor: int
    _lock: FileLock
    _is_torn: bool
    _results: int
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open the journal to go on with it, or begin one; folders above it are made.

        Raises: HarnessError when another run has it, or when it cannot be written.
        """
        with _told(path, results=None):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = _hold(path)
            try:
                data = path.read_bytes() if path.exists() else b""
                flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY
                descriptor = os.open(path, flags, 0o644)
            except BaseException:
                _let_go(path, lock)
                raise
        is_torn = bool(data) and not data.endswith(b"\n")
        return cls(path, descriptor, lock, is_torn, data.count(_OBSERVATION))

    def append(self, record: Record) -> None:
        """Write one record as one whole line, or nothing of it.

        Raises: HarnessError (our fault) when the disk is full; what was written before is safe, and
        this may be called again once there is room.
        """
        content = {"schema": SCHEMA, **_RECORD.dump_python(record, mode="json")}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        # A case may print what is no Unicode text; it must not cost the result.
        line = text.encode("utf-8", errors="replace") + b"\n"
        with self._turn, _told(self.path, results=self._results):
            self._write(b"\n" + line if self._is_torn else line)
            self._is_torn = False
            self._results += isinstance(record, Observation)

    def close(self) -> None:
        """Have the journal on the disk and let others write it. Closing twice does no harm.

        Raises: HarnessError (our fault) when the disk does not take what it had accepted.
        """
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            with _told(self.path, results=self._results):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
            _let_go(self.path, self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        end = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BaseException:  # Ctrl-C between two writes leaves half a line too
            try:
                os.ftruncate(self._descriptor, end)
            except OSError:
                self._is_torn = True
            raise


def fresh(path: Path) -> Path | None:
    """Move a journal aside, so that the next run begins anew; returns where to, None without one.

    What was moved aside before is replaced. Raises: HarnessError when a run is writing the journal.
    """
    if not path.exists():
        return None
    aside = path.with_name(f"{path.stem}.previous{path.suffix}")
    with _told(path, results=None):
        lock = _hold(path)
        try:
            path.replace(aside)
        finally:
            _let_go(path, lock)
    return aside


def read_records(paths: Path | Sequence[Path]) -> Reading:
    """Read one journal, or several as if they were one.

    Raises: HarnessError for a journal that is not there, and for one that a newer harness wrote.
    """
    records: list[Record] = []
    torn = 0
    for path in [paths] if isinstance(paths, Path) else paths:
        try:
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            message, hint = "there is no such journal", "a run writes it: compile-matrix run"
            raise HarnessError(message, where=str(path), hint=hint) from None
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            raise HarnessError(message, where=str(path)) from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            record = _record_of(line, f"{path}:{number}")
            if record is not None:
                records.append(record)
            elif number < len(lines):
                torn += 1
    return Reading(records=tuple(records), torn=torn)


class Probe(NamedTuple):
    """A probe and all that its result depends on. Where all is equal, the result is still true."""

    cell: str
    case: str
    path: str
    case_digest: str
    environment: str
    protocol: int


def reusable(records: Iterable[Record]) -> dict[Probe, Observation]:
    """What need not be measured again: the last observation of each probe, as it was then.

    A probe that was not run was not measured. Look up with the digest, environment and protocol of now.
    """
    return {
        Probe(
            record.cell,
            record.case,
            record.path,
            record.case_digest,
            record.environment,
            record.protocol,
        ): record
        for record in records
        if isinstance(record, Observation) and record.verdict is not Verdict.NOT_RUN
    }


def _record_of(line: bytes, where: str) -> Record | None:
    """The record of a line; None when it is torn. Raises: HarnessError when it is of a newer harness."""
    try:
        content: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get("record"), str):
        return None
    schema, record = content.pop("schema", SCHEMA), content["record"]
    if schema != SCHEMA or record not in _KINDS:
        what = f"schema {schema}" if schema != SCHEMA else f"record {record!r}"
        message = f"written by another version of compile-matrix ({what} is unknown to this one)"
        raise HarnessError(message, where=where, hint="use that version, or begin anew: --fresh")
    try:
        return _RECORD.validate_python(content)
    except ValidationError:
        return None


@contextmanager
def _told(path: Path, *, results: int | None) -> Iterator[None]:
    """Tell what the system refuses as our own error. results: how many are safe; None: unknown."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in _NO_ROOM
        message = "the disk is full" if is_full else f"cannot be written: {error.strerror or error}"
        if results is not None:
            safe = "1 result is" if results == 1 else f"{results:,} results are"
            message = f"{message}; {safe} safe in it"
        cure = "make room on that disk" if is_full else "mend that"
        hint = f"{cure}, and give the same command again: it goes on from there"
        status = ExitStatus.OUR_FAULT
        raise HarnessError(message, where=str(path), hint=hint, status=status) from error


def _hold(path: Path) -> FileLock:
    """Take the lock beside a journal and write down who has it. Raises: HarnessError, OSError."""
    lock = FileLock(_beside(path, "lock"), timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        try:
            holder = _beside(path, "holder").read_text(encoding="utf-8").strip()
        except OSError:
            holder = ""
        message = f"another run is writing this journal{holder and f': {holder}'}"
        hint = "wait until it has ended, or give this run a folder of its own: --reports DIR"
        raise HarnessError(message, where=str(path), hint=hint) from None
    with suppress(OSError):  # only for the sentence above
        text = f"process {os.getpid()} on {platform.node()}\n"
        _beside(path, "holder").write_text(text, encoding="utf-8")
    return lock


def _let_go(path: Path, lock: FileLock) -> None:
    with suppress(OSError):
        _beside(path, "holder").unlink()
    lock.release()


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.name}.{what}")
