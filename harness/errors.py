"""The one error that a user sees, and what the process exits with."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What `compile-matrix` exits with; each number means one thing (README lists them)."""

    OK = 0
    """Everything asked for was looked at, and nothing differs from what is expected."""
    DIFFERENT = 1
    """At least one verdict differs from what is expected, for worse or for better."""
    USAGE = 2
    """The command line, matrix.yaml, a case or the baseline is at fault."""
    NOTHING_PROBED = 3
    """No probe ran: nothing was learnt, whatever the reason."""
    OUR_FAULT = 4
    """The harness, or the machine under it (a full disk), is at fault; what was measured is kept."""
    INTERRUPTED = 130
    """Ctrl-C or SIGTERM; what was measured is kept and the next run goes on from there."""


class HarnessError(Exception):
    """Something a user can mend, told in one sentence.

    message: what is wrong, without a full stop.
    where: `file:line:column`, `file:line` or a path; empty where there is no place.
    hint: what to do about it; empty where the message already says it.
    status: what the process exits with.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        hint: str = "",
        status: ExitStatus = ExitStatus.USAGE,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.status = status

    def render(self) -> str:
        """The lines a user reads, without colour and without a traceback."""
        place = f"{self.where}: " if self.where else ""
        tail = f"\n  hint: {self.hint}" if self.hint else ""
        return f"error: {place}{self.message}{tail}"


class HarnessErrors(HarnessError):
    """Several mistakes found in one reading, told together so that they are mended together."""

    def __init__(self, errors: tuple[HarnessError, ...]) -> None:
        first = errors[0]
        super().__init__(first.message, where=first.where, hint=first.hint, status=first.status)
        self.errors = errors

    def render(self) -> str:
        return "\n".join(error.render() for error in self.errors)
