"""Reports: pure functions of findings, and the one function that writes them into a folder.

Equal findings give equal bytes: nothing here knows the time, the machine or the order of a set.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from harness.errors import ExitStatus, HarnessError
from harness.reports.github import annotation_lines, render_summary
from harness.reports.junit import render_junit
from harness.reports.markdown import render_markdown
from harness.reports.page import render_page
from harness.reports.support import render_support, support_schema
from harness.reports.text import render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.results import Findings

__all__ = [
    "PUBLISHED",
    "REPORTS",
    "annotation_lines",
    "render_junit",
    "render_markdown",
    "render_page",
    "render_summary",
    "render_support",
    "render_text",
    "support_schema",
    "write_reports",
]

REPORTS: dict[str, Callable[[Findings], str]] = {
    "support.json": render_support,
    "support.md": render_markdown,
    "index.html": render_page,
    "junit.xml": render_junit,
    "summary.md": render_summary,
}
"""File name → what renders it."""

PUBLISHED = ("support.json", "support.md", "index.html")
"""Those that are published under docs/, beside their schema."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_AGAIN = (
    "nothing that was measured is lost; make room, then write them again: compile-matrix report"
)


def write_reports(
    findings: Findings, directory: Path, names: Sequence[str] = tuple(REPORTS)
) -> tuple[Path, ...]:
    """Write the reports named into a folder, which is made where it is missing; return the files.

    All are written beside their places first and moved into them together, so that a reader, or a full disk,
    never meets half a report, and reports of two runs hardly ever stand side by side.
    Raises: HarnessError, with status OUR_FAULT where the disk is full or fails, and USAGE where the folder
    is no place to write into. Whatever stood there before still stands then.
    """
    texts = {name: REPORTS[name](findings).encode() for name in names}
    written: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            neighbour = directory / f".{name}.{os.getpid()}.partial"
            written.append((neighbour, directory / name))
            _write(neighbour, text)
        for neighbour, place in written:
            neighbour.replace(place)
    except OSError as error:
        for neighbour, _ in written:
            with contextlib.suppress(OSError):
                neighbour.unlink(missing_ok=True)
        raise _explain(error, directory) from error
    return tuple(place for _, place in written)


def _write(path: Path, text: bytes) -> None:
    with path.open("wb") as file:
        file.write(text)
        file.flush()
        # A network disk, or one with a quota, may refuse only here.
        os.fsync(file.fileno())


def _explain(error: OSError, directory: Path) -> HarnessError:
    if error.errno in _FULL:
        return HarnessError(
            "the disk is full, and the reports could not be written",
            where=str(directory),
            hint=_AGAIN,
            status=ExitStatus.OUR_FAULT,
        )
    said = error.strerror or str(error)
    if isinstance(error, (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError)):
        return HarnessError(
            f"the reports cannot be written there: {said}",
            where=str(error.filename or directory),
            hint="name a folder that can be written into: compile-matrix report --reports DIR",
            status=ExitStatus.USAGE,
        )
    return HarnessError(
        f"the reports could not be written: {said}",
        where=str(directory),
        hint=_AGAIN,
        status=ExitStatus.OUR_FAULT,
    )
