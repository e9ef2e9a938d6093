"""The cell's own server with plain scripts, and with a torch that is none: no probe escapes or lies."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import process
from harness.cell_server import CellServer, ServerDied
from harness.worker import PROTOCOL
from tests.unit.worlds import has_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone forks")

STUB_TORCH = Path(__file__).parents[1] / "fixtures" / "worker" / "stub_torch"


def start(folder: Path, *, fork: bool, torch: bool) -> CellServer:
    env = process.allowed_environment(os.environ)
    if torch:
        env["PYTHONPATH"] = str(STUB_TORCH)
    return CellServer(Path(sys.executable), env, folder, fork=fork)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellServer]:
    """A server that starts a new process for each probe. There is no torch."""
    server = start(tmp_path_factory.mktemp("fresh"), fork=False, torch=False)
    yield server
    server.close()


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CellServer]:
    """A server that forks."""
    server = start(tmp_path_factory.mktemp("warm"), fork=True, torch=True)
    yield server
    server.close()


@pytest.fixture(params=["fresh", pytest.param("warm", marks=linux)])
def server(request: pytest.FixtureRequest) -> CellServer:
    found: CellServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Probes a script in a server."""

    def look(server: CellServer, text: str, **changes: Any) -> dict[str, Any]:
        file = tmp_path / "script.py"
        file.write_text(text, encoding="utf-8")
        request = {
            "case": "group/script",
            "file": str(file),
            "kind": "script",
            "path": "script",
            "device": "cpu",
            "deadline_s": 30.0,
            "memory_bytes": 0,
            "isolation": "fork" if server.ready["fork"] else "process",
            **changes,
        }
        return server.probe(request)

    return look


def test_a_server_says_how_it_works(fresh: CellServer) -> None:
    assert fresh.ready["protocol"] == PROTOCOL
    assert (fresh.ready["fork"], fresh.ready["failure"]) == (False, "")


@linux
def test_a_warm_server_has_one_thread(warm: CellServer) -> None:
    assert (warm.ready["fork"], warm.ready["failure"]) == (True, "")
    assert warm.ready["threads"] == 1


def test_a_script_is_judged_by_its_exit_status(server: CellServer, look: Any) -> None:
    good = look(server, "print('hello')\n")
    assert (good["verdict"], good["exit_status"]) == ("uncompiled", 0)
    assert good["output"] == "hello\n"
    assert good["isolation"] == ("fork" if server.ready["fork"] else "process")
    assert good["peak_bytes"] > 1_000_000
    bad = look(server, "import sys\nsys.exit(3)\n")
    assert (bad["verdict"], bad["exit_status"], bad["message"]) == ("error", 3, "exit status 3")
    said = look(server, "import sys\nsys.exit('no luck')\n")
    assert (said["exit_status"], said["output"]) == (1, "no luck\n")


def test_what_a_script_raises_is_kept_without_the_machine(server: CellServer, look: Any) -> None:
    text = "def f():\n    raise ValueError('no')\ntry:\n    {}[1]\nexcept KeyError:\n    f()\n"
    seen = look(server, text)
    assert (seen["verdict"], seen["message"][-2:]) == ("error", "no")
    assert [raised["type"] for raised in seen["raised"]] == ["ValueError", "KeyError"]
    assert seen["raised"][0]["frame"] == "script.py:2 in f"
    assert 'File "group/script.py", line 2, in f' in seen["traceback"]
    assert str(Path(__file__).parents[2]) not in seen["traceback"]


def test_a_script_that_leaves_by_the_back_door_is_judged_all_the_same(
    server: CellServer, look: Any
) -> None:
    seen = look(server, "import os\nos._exit(7)\n")
    assert (seen["verdict"], seen["exit_status"]) == ("error", 7)


def test_a_script_may_close_all_that_it_finds_open(server: CellServer, look: Any) -> None:
    seen = look(server, "import os\nos.closerange(0, 128)\n")
    assert (seen["verdict"], seen["exit_status"]) == ("uncompiled", 0)


def test_a_flood_is_kept_to_its_end(server: CellServer, look: Any) -> None:
    seen = look(server, "print('x' * 300_000)\nprint('the end')\n")
    assert seen["output"].startswith("[cut]\n")
    assert seen["output"].endswith("xxx\nthe end\n")
    assert len(seen["output"]) < 13_000


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGABRT"])
def test_a_crash_is_told_with_its_signal(server: CellServer, look: Any, name: str) -> None:
    text = f"import os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.{name})\n"
    seen = look(server, text)
    assert (seen["verdict"], seen["signal"]) == ("crash", name)
    assert name in seen["message"]
    assert "before" in seen["output"]
    if name != "SIGKILL":
        assert "group/script.py" in seen["output"]  # faulthandler's traceback


def test_a_probe_ends_at_its_deadline_and_so_does_all_that_it_started(
    server: CellServer, look: Any, tmp_path: Path
) -> None:
    text = (
        "import os, subprocess, sys, time\n"
        f"note = open({str(tmp_path / 'pids')!r}, 'w')\n"
        "for alone in (False, True):\n"
        "    child = subprocess.Popen(['sleep', '60'], start_new_session=alone)\n"
        "    print(child.pid, file=note, flush=True)\n"
        "print('hanging', flush=True)\n"
        "time.sleep(60)\n"
    )
    seen = look(server, text, deadline_s=1.5)
    assert (seen["verdict"], seen["message"]) == ("timeout", "ended after its deadline of 1.5 s")
    assert seen["output"].startswith("hanging\n")
    assert 1.4 < seen["seconds"] < 20
    if seen["isolation"] == "fork":  # a fresh one starts to count when it has started
        assert "group/script.py" in seen["output"]  # where it hung
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    if sys.platform.startswith("linux"):
        assert all(has_ended(pid) for pid in pids)


@linux
def test_a_probe_beyond_its_bound_is_ended(server: CellServer, look: Any) -> None:
    text = "import time\nheld = bytearray(b'x') * 300_000_000\ntime.sleep(60)\n"
    seen = look(server, text, memory_bytes=150_000_000)
    assert (seen["verdict"], seen["message"]) == (
        "out-of-memory", "ended beyond its bound of 0.14 GiB",
    )  # fmt: skip
    assert seen["peak_bytes"] > 150_000_000


@linux
def test_a_fork_leaves_nothing_behind_for_the_next(warm: CellServer, look: Any) -> None:
    first = look(warm, "import sys, os\nsys.left = os.environ['LEFT'] = 'behind'\n")
    second = look(
        warm, "import sys, os\nassert not hasattr(sys, 'left')\nassert 'LEFT' not in os.environ\n"
    )
    assert [first["exit_status"], second["exit_status"]] == [0, 0]


@linux
def test_a_warm_server_gives_a_fresh_process_to_those_who_ask(warm: CellServer, look: Any) -> None:
    text = "import sys\nprint('torch._dynamo' in sys.modules)\n"
    assert look(warm, text)["output"] == "True\n"
    asked = look(warm, text, isolation="process")
    assert (asked["output"], asked["isolation"]) == ("False\n", "process")


@linux
def test_a_server_whose_torch_cannot_be_imported_asks_each_probe_anew(
    tmp_path: Path, look: Any
) -> None:
    server = start(tmp_path / "server", fork=True, torch=False)
    try:
        assert server.ready["fork"] is False
        assert "ModuleNotFoundError: No module named 'torch'" in server.ready["failure"]
        seen = look(server, "import torch\n", isolation="fork")
    finally:
        server.close()
    assert (seen["verdict"], seen["isolation"]) == ("unavailable", "process")


@linux
@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("fork", [True, False])
def test_no_probe_outlives_its_server(tmp_path: Path, how: str, fork: bool, look: Any) -> None:
    server = start(tmp_path / "server", fork=fork, torch=fork)
    note = tmp_path / "pid"
    text = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    died: list[BaseException] = []

    def probe() -> None:
        try:
            look(server, text)
        except ServerDied as death:
            died.append(death)

    thread = threading.Thread(target=probe)
    thread.start()
    until = time.monotonic() + 20
    while not (note.exists() and note.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    pid = int(note.read_text())
    if how == "killed":
        os.kill(server._child.pid, signal.SIGKILL)
    server.close()
    thread.join()
    assert len(died) == 1
    until = time.monotonic() + 5
    while not has_ended(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert has_ended(pid)
