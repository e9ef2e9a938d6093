"""What a user sees of a run while it goes on: one moving display on a terminal, else a line an event."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from harness.results import Verdict

if TYPE_CHECKING:
    from typing import TextIO

    from harness.results import Observation

_STYLES = {
    Verdict.FULL: "green",
    Verdict.PARTIAL: "cyan",
    Verdict.UNCOMPILED: "yellow",
    Verdict.WRONG: "bold magenta",
    Verdict.UNAVAILABLE: "dim",
    Verdict.NOT_RUN: "dim",
}


class Progress(Protocol):
    """Told of everything, from any thread."""

    def settled(self, found: Observation, *, is_known: bool) -> None: ...
    def skipped(self, count: int) -> None: ...
    def note(self, cell: str, doing: str) -> None: ...
    def cell_done(self, cell: str) -> None: ...
    def say(self, line: str) -> None: ...
    def close(self) -> None: ...


def make_progress(stream: TextIO, *, probes: int, cells: int, colour: bool) -> Progress:
    """The display that suits the stream. colour: False where NO_COLOR is set and not empty."""
    if stream.isatty():
        return _Display(stream, probes, cells, colour)
    return _Lines(stream, probes)


class _Lines:
    """A plain line for each event; what was known from before is only counted."""

    def __init__(self, stream: TextIO, probes: int) -> None:
        self._stream = stream
        self._probes = probes
        self._done = 0
        self._known = 0
        self._lock = threading.Lock()

    def settled(self, found: Observation, *, is_known: bool) -> None:
        with self._lock:
            self._done += 1
            self._known += is_known
            done = self._done
        if not is_known:
            what = f"{found.cell} {found.case} {found.path}: {found.verdict.value}"
            self.say(f"[{done}/{self._probes}] {what} ({found.seconds:.2f} s)")

    def skipped(self, count: int) -> None:
        with self._lock:
            self._done += count

    def note(self, cell: str, doing: str) -> None:
        pass  # the store tells what it does with an environment

    def cell_done(self, cell: str) -> None:
        pass

    def say(self, line: str) -> None:
        with self._lock:
            print(line, file=self._stream, flush=True)

    def close(self) -> None:
        if self._known:
            what = "1 result is" if self._known == 1 else f"{self._known} results are"
            self.say(f"{what} known from before")


class _Display:
    """A bar with the remaining time, and the verdicts so far."""

    def __init__(self, stream: TextIO, probes: int, cells: int, colour: bool) -> None:
        console = Console(file=stream, no_color=not colour, highlight=False)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
        )
        self._probes = self._bar.add_task("probes", total=probes)
        self._cells = self._bar.add_task("cells", total=cells)
        self._counts: dict[Verdict, int] = {}
        self._doing: dict[str, str] = {}
        self._lock = threading.Lock()
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)
        self._live.start()

    def _render(self) -> Group:
        with self._lock:
            verdicts = Text("  ")
            for verdict in Verdict:
                if count := self._counts.get(verdict, 0):
                    verdicts.append(f"{count} {verdict.value}  ", style=_STYLES.get(verdict, "red"))
            doing = [Text(f"  {cell}: {what}", style="dim") for cell, what in self._doing.items()]
        return Group(*doing[-4:], self._bar, verdicts)

    def settled(self, found: Observation, *, is_known: bool) -> None:  # noqa: ARG002
        with self._lock:
            self._counts[found.verdict] = self._counts.get(found.verdict, 0) + 1
            self._doing[found.cell] = f"{found.case} {found.path}"
        self._bar.advance(self._probes)

    def skipped(self, count: int) -> None:
        with self._lock:
            self._counts[Verdict.NOT_RUN] = self._counts.get(Verdict.NOT_RUN, 0) + count
        self._bar.advance(self._probes, count)

    def note(self, cell: str, doing: str) -> None:
        with self._lock:
            self._doing[cell] = doing

    def cell_done(self, cell: str) -> None:
        with self._lock:
            self._doing.pop(cell, None)
        self._bar.advance(self._cells)

    def say(self, line: str) -> None:
        self._live.console.print(line, markup=False)

    def close(self) -> None:
        self._live.stop()
