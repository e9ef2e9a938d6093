"""A cell's server and the next one: restarts after a death, none after a failure to come up."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import cell_server
from harness.cell_server import ServerDied, ServerFailed, cell_environment
from harness.live_cell import LiveCell
from harness.plan import Probe
from tests.unit.worlds import FakePython, has_ended, make_case, make_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the fake server is a script with a #! line"
    ),
]

PROBE = Probe(
    cell=make_cell(), case=make_case("a/b"), path="dynamo", deadline_s=10.0, isolation="fork"
)


@pytest.fixture
def python(tmp_path: Path) -> FakePython:
    return FakePython(tmp_path / "bin")


@pytest.fixture
def start(python: FakePython, tmp_path: Path) -> Iterator[Callable[[], LiveCell]]:
    cells: list[LiveCell] = []

    def start() -> LiveCell:
        env = cell_environment(os.environ, python.install(), "cpu")
        cells.append(LiveCell(python.path, env, tmp_path / "scratch", fork=True, memory_bytes=4096))
        return cells[-1]

    yield start
    for cell in cells:
        cell.end()


def test_a_probe_is_asked_as_it_was_planned_from_wherever_the_case_stands(
    python: FakePython, start: Callable[[], LiveCell]
) -> None:
    live = start()
    assert live.probe(PROBE)["verdict"] == "full"
    assert live.probe(PROBE, isolation="process")["isolation"] == "process"
    sent = [event["request"] for event in python.events if event["event"] == "begin"]
    assert [request["isolation"] for request in sent] == ["fork", "process"]
    assert sent[0]["file"] == str(Path.cwd() / "cases" / "a" / "b.py")
    assert (sent[0]["memory_bytes"], sent[0]["deadline_s"]) == (4096, 10.0)
    assert (sent[0]["kind"], sent[0]["device"]) == ("run", "cpu")


def test_no_server_is_started_before_the_first_probe(
    python: FakePython, start: Callable[[], LiveCell]
) -> None:
    live = start()
    assert python.starts == []
    assert not live.has_come_up
    live.probe(PROBE)
    live.probe(PROBE)
    assert len(python.starts) == 1
    assert live.has_come_up


def test_a_server_that_died_is_followed_by_another_in_a_folder_of_its_own(
    python: FakePython, start: Callable[[], LiveCell], tmp_path: Path
) -> None:
    python.does("a/b dynamo", {"do": "die"})
    live = start()
    with pytest.raises(ServerDied) as caught:
        live.probe(PROBE)
    assert caught.value.signal == "SIGKILL"
    assert live.has_come_up
    assert live.probe(PROBE)["verdict"] == "full"
    assert len(python.starts) == 2
    assert sorted(folder.name for folder in (tmp_path / "scratch").iterdir()) == [
        "server-1",
        "server-2",
    ]


def test_a_server_that_failed_to_come_up_is_not_tried_again(
    python: FakePython, start: Callable[[], LiveCell]
) -> None:
    python.script["starts"] = ["leave"]
    live = start()
    for _ in range(2):
        with pytest.raises(ServerFailed) as caught:
            live.probe(PROBE)
        assert "no torch worth the name" in caught.value.log
    assert len(python.starts) == 1
    assert not live.has_come_up


def test_a_cell_that_was_ended_starts_nothing(
    python: FakePython, start: Callable[[], LiveCell]
) -> None:
    live = start()
    live.probe(PROBE)
    live.end()
    assert has_ended(python.starts[0])
    with pytest.raises(ServerDied, match="ended"):
        live.probe(PROBE)
    assert len(python.starts) == 1


def test_a_cell_can_be_ended_while_its_server_comes_up(
    python: FakePython, start: Callable[[], LiveCell], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    python.script["starts"] = ["never"]
    live = start()
    threading.Timer(0.1, live.end).start()
    before = time.monotonic()
    with pytest.raises(ServerDied):
        live.probe(PROBE)
    assert time.monotonic() - before < 5


def test_several_threads_share_one_server(
    python: FakePython, start: Callable[[], LiveCell]
) -> None:
    python.script["starts"] = ["slow"]
    live, verdicts = start(), list[str]()

    def probe(number: int) -> None:
        case = make_case(f"a/{number}")
        verdicts.append(live.probe(replace(PROBE, case=case))["verdict"])

    threads = [threading.Thread(target=probe, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == ["full"] * 4
    assert len(python.starts) == 1
