"""What a user sees while a run goes on: a line an event, or one display on a terminal."""

from __future__ import annotations

import io
import re
import threading

import pytest

from harness.progress import Progress, make_progress
from harness.results import Observation, Verdict


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def found(
    case: str = "a/b", verdict: Verdict = Verdict.FULL, seconds: float = 0.125
) -> Observation:
    return Observation(cell="3.12-2.4", case=case, path="dynamo", verdict=verdict, seconds=seconds)


def lines(progress: Progress, stream: io.StringIO) -> list[str]:
    progress.close()
    return stream.getvalue().splitlines()


def plain(probes: int = 4) -> tuple[Progress, io.StringIO]:
    stream = io.StringIO()
    return make_progress(stream, probes=probes, cells=1, colour=True), stream


# ----------------------------------------------------------------------------------------- plain lines


def test_each_new_result_is_one_line_and_nothing_else_is() -> None:
    progress, stream = plain()
    progress.settled(found("a/one"), is_known=False)
    progress.settled(found("a/known"), is_known=True)
    progress.note("3.12-2.4", "environment")
    progress.skipped(1)
    progress.settled(found("a/two", Verdict.WRONG, 12.0), is_known=False)
    progress.cell_done("3.12-2.4")
    assert lines(progress, stream) == [
        "[1/4] 3.12-2.4 a/one dynamo: full (0.12 s)",
        "[4/4] 3.12-2.4 a/two dynamo: wrong (12.00 s)",
        "1 result is known from before",
    ]


def test_several_known_results_are_counted_in_the_end() -> None:
    progress, stream = plain()
    for _ in range(3):
        progress.settled(found(), is_known=True)
    assert lines(progress, stream) == ["3 results are known from before"]


def test_what_the_store_says_is_a_line_too() -> None:
    progress, stream = plain()
    progress.say("3.12-2.4: installing [torch] 27 packages")
    assert lines(progress, stream) == ["3.12-2.4: installing [torch] 27 packages"]


def test_no_escape_sequence_gets_into_a_file() -> None:
    progress, stream = plain()
    progress.settled(found(verdict=Verdict.CRASH), is_known=False)
    progress.close()
    assert "\x1b" not in stream.getvalue()


def test_lines_of_many_threads_do_not_mix() -> None:
    progress, stream = plain(400)

    def settle(number: int) -> None:
        for _ in range(50):
            progress.settled(found(f"a/{number}" * 20), is_known=False)

    threads = [threading.Thread(target=settle, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = lines(progress, stream)
    assert len(written) == 400
    assert all(
        re.fullmatch(r"\[\d+/400\] 3\.12-2\.4 \S+ dynamo: full \(0\.12 s\)", w) for w in written
    )
    assert {int(line.partition("/")[0][1:]) for line in written} == set(range(1, 401))


# -------------------------------------------------------------------------------------------- a terminal


def display(colour: bool = False) -> tuple[Progress, Terminal]:
    stream = Terminal()
    return make_progress(stream, probes=6, cells=2, colour=colour), stream


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def last_screen(stream: Terminal) -> str:
    """The text of the last refresh, without its colours."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    return text[text.rindex("probes") :]


def test_a_terminal_shows_probes_cells_verdicts_and_the_time_left() -> None:
    progress, stream = display()
    progress.settled(found("a/1"), is_known=False)
    progress.settled(found("a/2"), is_known=True)
    progress.settled(found("a/3", Verdict.WRONG), is_known=False)
    progress.skipped(2)
    progress.cell_done("3.12-2.4")
    progress.close()
    screen = last_screen(stream)
    assert re.search(r"probes .*5/6 .*left:", screen)
    assert re.search(r"cells .*1/2 ", screen)
    assert "2 full  1 wrong  2 not-run" in screen


def test_a_terminal_shows_what_each_cell_is_doing_until_it_is_done() -> None:
    progress, stream = display()
    progress.note("3.10-2.4", "environment")
    progress.settled(found("a/busy"), is_known=False)
    progress.close()
    assert "3.10-2.4: environment" in stream.getvalue()
    assert "3.12-2.4: a/busy dynamo" in stream.getvalue()

    progress, stream = display()
    progress.note("3.10-2.4", "environment")
    progress.cell_done("3.10-2.4")
    progress.close()
    screen = last_screen(stream)
    assert "environment" not in screen


def test_a_line_of_the_stores_stands_above_the_display_as_it_is() -> None:
    progress, stream = display()
    progress.say("3.12-2.4: [bold]installing[/bold] 27 packages")
    progress.close()
    assert "3.12-2.4: [bold]installing[/bold] 27 packages" in stream.getvalue()


def test_colours_are_there_only_where_they_are_wanted() -> None:
    shown = {}
    for colour in (True, False):
        progress, stream = display(colour)
        progress.settled(found(verdict=Verdict.CRASH), is_known=False)
        progress.close()
        shown[colour] = re.findall(r"\x1b\[[0-9;]*(?:3[0-7]|38;5;\d+)m", stream.getvalue())
    assert shown[True]
    assert shown[False] == []
