"""The harness's end of a cell's server, against one that answers, floods, hangs, babbles and dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from harness import cell_server, process
from harness.cell_server import CellServer, ServerDied, ServerFailed, cell_environment
from tests.unit.worlds import FakePython, has_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the fake server is a script with a #! line"
    ),
]

KILL, SEGV = int(signal.SIGKILL), int(signal.SIGSEGV)


@pytest.fixture
def python(tmp_path: Path) -> FakePython:
    return FakePython(tmp_path / "bin")


@pytest.fixture
def start(python: FakePython, tmp_path: Path) -> Iterator[Callable[[], CellServer]]:
    """Starts the server as the script says that stands by then; all are closed in the end."""
    servers: list[CellServer] = []

    def start() -> CellServer:
        env = cell_environment(os.environ, python.install(), "cpu")
        folder = tmp_path / f"server-{len(servers)}"
        servers.append(CellServer(python.path, env, folder, fork=True))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def request(case: str = "a/b", path: str = "dynamo", **changes: Any) -> dict[str, Any]:
    return {
        "case": case,
        "file": f"/cases/{case}.py",
        "kind": "run",
        "path": path,
        "device": "cpu",
        "deadline_s": 10.0,
        "memory_bytes": 1,
        "isolation": "fork",
        **changes,
    }


def begun(python: FakePython, count: int) -> None:
    until = time.monotonic() + 5
    while len(python.looks()) < count and time.monotonic() < until:
        time.sleep(0.01)
    assert len(python.looks()) == count


# ------------------------------------------------------------------------------------ what a cell sees


def test_a_cell_sees_an_activated_environment_and_no_setting_of_the_users_shell(
    tmp_path: Path,
) -> None:
    source = {
        "PATH": "/usr/bin",
        "CXX": "clang++",
        "TORCH_LOGS": "+dynamo",
        "PYTHONPATH": "/elsewhere",
        "OMP_NUM_THREADS": "8",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    env = cell_environment(source, tmp_path / "bin" / "python", "cpu")
    assert env["PATH"] == f"{tmp_path / 'bin'}{os.pathsep}/usr/bin"
    assert env["CXX"] == "clang++"
    assert not {"TORCH_LOGS", "PYTHONPATH"} & set(env)
    assert env["OMP_NUM_THREADS"] == env["TORCHINDUCTOR_COMPILE_THREADS"] == "1"
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    on_cuda = cell_environment(source, tmp_path / "bin" / "python", "cuda")
    assert on_cuda["CUDA_VISIBLE_DEVICES"] == "1"


def test_the_server_is_told_its_mode_and_keeps_its_files_in_its_own_folder(
    python: FakePython, start: Callable[[], CellServer], tmp_path: Path
) -> None:
    server = start()
    assert server.ready["threads"] == 1
    (event,) = python.events
    assert event["argv"][:3] == ["-X", "faulthandler", "-c"]
    assert event["argv"][-1] == "fork"
    assert "harness.worker.server" in event["argv"][3]
    for name in ("TMPDIR", "TEMP", "TMP"):
        assert event["environment"][name] == str(tmp_path / "server-0" / "tmp")


# --------------------------------------------------------------------------------------------- probes


def test_a_probe_is_answered_with_what_was_seen(
    python: FakePython, start: Callable[[], CellServer], tmp_path: Path
) -> None:
    python.does("a/b dynamo", {"seen": {"verdict": "partial", "graphs": 2}})
    seen = start().probe(request())
    assert (seen["verdict"], seen["graphs"], seen["isolation"]) == ("partial", 2, "fork")
    sent = next(event for event in python.events if event["event"] == "begin")["request"]
    assert sent == {
        **request(),
        "id": 1,
        "folder": str(tmp_path / "server-0" / "probe-1"),
    }


def test_probes_of_several_threads_each_get_their_own_answer(
    python: FakePython, start: Callable[[], CellServer]
) -> None:
    for number in range(8):
        action = {"after": 0.1 - number / 100, "seen": {"message": str(number)}}
        python.does(f"a/{number} dynamo", action)
    server, found = start(), dict[int, str]()

    def probe(number: int) -> None:
        found[number] = server.probe(request(f"a/{number}"))["message"]

    threads = [threading.Thread(target=probe, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: str(number) for number in range(8)}


def test_a_flood_of_log_and_of_answers_that_nobody_asked_for_does_no_harm(
    python: FakePython, start: Callable[[], CellServer]
) -> None:
    python.does("a/b dynamo", {"do": "flood", "seen": {"message": "after the flood"}})
    server = start()
    seen = server.probe(request())
    assert seen["message"] == "after the flood"
    assert len(seen["output"]) == 1_000_000
    assert server.probe(request(path="aot"))["verdict"] == "full"
    assert len(server.log_tail()) <= 12_000


def test_an_answer_that_does_not_come_in_time_ends_the_server(
    python: FakePython, start: Callable[[], CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_GRACE_S", 0.1)
    python.does("a/b dynamo", {"do": "silence"})
    server = start()
    with pytest.raises(ServerDied) as caught:
        server.probe(request(deadline_s=0.1))
    assert "did not answer in 0.2 s" in caught.value.log
    assert not isinstance(caught.value, ServerFailed)
    assert server.is_dead
    assert has_ended(python.starts[0])


# ---------------------------------------------------------------------------------------- how it dies


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ({"do": "die", "signal": KILL}, "SIGKILL"),
        ({"do": "die", "signal": SEGV}, "SIGSEGV"),
        ({"do": "leave", "status": 3}, ""),
    ],
)
def test_a_server_that_dies_says_how_and_takes_every_probe_in_it_along(
    python: FakePython, start: Callable[[], CellServer], action: dict[str, Any], name: str
) -> None:
    python.does("a/other dynamo", {"do": "silence"})
    python.does("a/b dynamo", {"after": 0.05, **action})
    server, deaths = start(), list[ServerDied]()

    def probe(case: str) -> None:
        with pytest.raises(ServerDied) as caught:
            server.probe(request(case))
        deaths.append(caught.value)

    other = threading.Thread(target=probe, args=("a/other",))
    other.start()
    begun(python, 1)
    probe("a/b")
    other.join()
    assert [death.signal for death in deaths] == [name, name]
    if name:
        assert "Fatal Python error: this server dies" in deaths[0].log
    with pytest.raises(ServerDied):
        server.probe(request("a/later"))


def test_what_is_no_answer_counts_as_a_death_although_the_process_lives(
    python: FakePython, start: Callable[[], CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    python.does("a/b dynamo", {"do": "babble"})
    server = start()
    with pytest.raises(ServerDied) as caught:
        server.probe(request())
    assert caught.value.signal == ""
    server.close()
    assert has_ended(python.starts[0])


# ----------------------------------------------------------------------------------- never coming up


@pytest.mark.parametrize(("what", "name"), [("die", "SIGSEGV"), ("leave", "")])
def test_a_server_that_dies_before_it_is_up_has_failed(
    python: FakePython, start: Callable[[], CellServer], what: str, name: str
) -> None:
    python.script["starts"] = [what]
    with pytest.raises(ServerFailed) as caught:
        start().probe(request())
    assert caught.value.signal == name
    assert ("Fatal Python error" if name else "no torch worth the name") in caught.value.log


@pytest.mark.parametrize("what", ["never", "stubborn"])
def test_a_server_that_never_comes_up_is_ended(
    python: FakePython,
    start: Callable[[], CellServer],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    monkeypatch.setattr(cell_server, "_READY_DEADLINE_S", 0.2)
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    hurried = partial(process.end_group, grace_s=0.1)
    monkeypatch.setattr(process, "end_group", hurried)
    python.script["starts"] = [what]
    with pytest.raises(ServerFailed) as caught:
        _ = start().ready
    assert "did not answer in 0.2 s" in caught.value.log
    assert has_ended(python.starts[0])


def test_an_interpreter_that_cannot_be_started_is_a_server_that_failed(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="No such file"):
        CellServer(tmp_path / "none", {}, tmp_path / "scratch", fork=True)


def test_a_scratch_folder_that_cannot_be_made_is_a_server_that_failed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServerFailed, match="Not a directory"):
        CellServer(tmp_path / "python", {}, tmp_path / "file" / "scratch", fork=True)


def test_a_server_can_be_closed_while_it_comes_up(
    python: FakePython, start: Callable[[], CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    python.script["starts"] = ["never"]
    server = start()
    threading.Timer(0.1, server.close).start()
    before = time.monotonic()
    with pytest.raises(ServerFailed):
        server.probe(request())
    assert time.monotonic() - before < 5


# --------------------------------------------------------------------------------------------- its end


def test_closing_lets_the_server_leave_by_itself_and_may_be_done_twice(
    python: FakePython, start: Callable[[], CellServer]
) -> None:
    server = start()
    assert server.ready
    server.close()
    server.close()
    assert python.events[-1]["event"] == "left"
    assert has_ended(python.starts[0])
    with pytest.raises(ServerDied):
        server.probe(request())


def test_once_a_server_is_reaped_its_number_is_signalled_no_more(
    python: FakePython, start: Callable[[], CellServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    signalled: list[int] = []
    monkeypatch.setattr("harness.process.end_group", signalled.append)
    server = start()
    assert server.ready
    server.close()
    server.close()
    assert signalled == []


def test_no_answer_is_awaited_from_a_server_that_another_thread_closes(
    python: FakePython, start: Callable[[], CellServer]
) -> None:
    python.does("a/b dynamo", {"do": "silence"})
    server = start()
    assert server.ready
    threading.Timer(0.1, server.close).start()
    with pytest.raises(ServerDied):
        server.probe(request())
