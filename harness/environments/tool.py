"""Runs uv, and says in the harness's words why it failed."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness import process
from harness.environments.model import EnvironmentFailed
from harness.interpreters import find_uv, uv_environment
from harness.results import NotRunReason

if TYPE_CHECKING:
    from harness.process import Finished

_EVIDENCE_LINES = 20
_EVIDENCE_CHARACTERS = 4000

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_DISK_FULL = re.compile(
    r"No space left on device|os error 28\b|Disk quota exceeded|os error 122\b"
    r"|not enough space on the disk|os error 112\b",
    re.IGNORECASE,
)
_NO_INTERPRETER = re.compile(
    r"No interpreter found|Failed to inspect Python interpreter|Querying Python at"
)
_OFFLINE = re.compile(r"network was disabled|Network connectivity is disabled")
_REFUSED = re.compile(r"401 Unauthorized|403 Forbidden|407 Proxy Authentication")
_NETWORK = re.compile(
    r"Request failed after|error sending request|Failed to fetch|dns error|tcp connect error"
    r"|Connection (?:refused|reset)|timed out|operation timed out|HTTP status (?:server|client) error"
    r"|invalid peer certificate|error decoding response body|connection closed before",
    re.IGNORECASE,
)
_NO_TORCH_WHEEL = re.compile(r"torch==\S+ has no (?:usable )?wheels|no version of torch==")
_NO_DATES = re.compile(r"is missing an upload date")
_MISMATCH = re.compile(r"(?:Hash|Size) mismatch for `([^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """uv, with what it may see and where its cache is. offline: it opens no connection."""

    env: Mapping[str, str]
    cache: Path
    offline: bool
    cancel: threading.Event | None = None

    def run(
        self, *arguments: str, deadline_s: float, cwd: Path, is_offline: bool = False
    ) -> Finished:
        """Run one command of uv. No configuration file of the user's is read.

        is_offline: from the cache, whether or not the rest of the run is offline.

        Raises: HarnessError when there is no uv, EnvironmentFailed when it cannot be started.
        """
        argv = (
            str(find_uv(self.env)),
            *arguments,
            "--no-config",
            "--no-progress",
            "--no-python-downloads",
            "--cache-dir",
            str(self.cache),
            *(("--offline",) if self.offline or is_offline else ()),
        )
        environment = uv_environment(self.env)
        try:
            return process.run(
                argv, deadline_s=deadline_s, env=environment, cwd=cwd, cancel=self.cancel
            )
        except OSError as error:
            detail = f"uv could not be started: {error.strerror or error}"
            raise EnvironmentFailed(NotRunReason.ENVIRONMENT_FAILED, detail) from error


def failure_of(finished: Finished, doing: str) -> EnvironmentFailed:
    """Why uv failed. doing: what it was asked for, as in `it did not finish <doing>`.

    uv's exit status says little (2 is the network, an absent interpreter, a full disk): its text is
    read. What is not recognised is ENVIRONMENT_FAILED with uv's own first and last reason.
    """
    text = finished.stderr_tail
    evidence = evidence_of(text)
    if finished.cancelled:
        return EnvironmentFailed(NotRunReason.INTERRUPTED, f"interrupted while {doing}", evidence)
    if finished.timed_out:
        detail = f"uv did not finish {doing} within {finished.seconds:.0f} s"
        return EnvironmentFailed(
            NotRunReason.ENVIRONMENT_FAILED, detail, evidence, is_transient=True
        )
    reason, detail, is_transient = _classify(text)
    if not text.strip():
        detail = f"uv ended with status {finished.status} while {doing} and said nothing"
    return EnvironmentFailed(reason, detail, evidence, is_transient=is_transient)


def evidence_of(text: str) -> str:
    """The last lines of what uv wrote, without the credentials that a URL may carry."""
    lines = _CREDENTIALS.sub("***@", text.strip()).splitlines()[-_EVIDENCE_LINES:]
    return "\n".join(lines)[-_EVIDENCE_CHARACTERS:]


def _classify(text: str) -> tuple[NotRunReason, str, bool]:
    told = _Told.read(_CREDENTIALS.sub("***@", text))
    if _DISK_FULL.search(text):
        return NotRunReason.DISK_FULL, f"the disk is full: {told.first_last}", True
    if mismatch := _MISMATCH.search(text):
        detail = f"{mismatch[1]} is not the file that was locked: its size or hash differs"
        return NotRunReason.ENVIRONMENT_FAILED, detail, False
    if _OFFLINE.search(text):
        detail = f"offline, and something is not in the cache: {told.cause or told.error}"
        return NotRunReason.INDEX_UNREACHABLE, detail, False
    if _NO_TORCH_WHEEL.search(text):
        return NotRunReason.NO_WHEEL, told.hint or told.cause or told.error, False
    if _NO_INTERPRETER.search(text):
        return NotRunReason.NO_INTERPRETER, told.first_last, False
    if _REFUSED.search(text):
        return NotRunReason.INDEX_UNREACHABLE, told.hint or told.first_last, False
    if _NO_DATES.search(text):
        detail = "the index gives no upload dates, so packages cannot be chosen by their date"
        return NotRunReason.ENVIRONMENT_FAILED, detail, False
    if _NETWORK.search(text):
        return NotRunReason.INDEX_UNREACHABLE, told.first_last, True
    if told.error.startswith("No solution found"):
        return NotRunReason.ENVIRONMENT_FAILED, told.cause or told.error, False
    return NotRunReason.ENVIRONMENT_FAILED, told.first_last, False


@dataclass(frozen=True, slots=True)
class _Told:
    """uv's report of an error: `error: …`, then indented `cause: …` lines, then `hint: …`."""

    error: str
    cause: str
    last_cause: str
    hint: str

    @property
    def first_last(self) -> str:
        return ": ".join(filter(None, (self.error, self.last_cause)))

    @classmethod
    def read(cls, text: str) -> _Told:
        error = hint = ""
        causes: list[str] = []
        for line in text.splitlines():
            word, colon, rest = line.strip().partition(":")
            match word if colon else "":
                case "error":
                    error = error or rest.strip()
                case "cause":
                    causes.append(rest.strip())
                case "hint":
                    hint = hint or rest.strip()
                case _:
                    continue
        first = causes[0] if causes else ""
        return cls(error.rstrip("."), first.rstrip("."), (causes or [""])[-1].rstrip("."), hint)
