"""Children that hang, flood, fork, die and ignore signals: none holds the harness up or outlives it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import process

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.process

posix = pytest.mark.skipif(sys.platform == "win32", reason="process groups and signals of POSIX")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., process.Finished]:
    def run(script: str, *arguments: str, **options: object) -> process.Finished:
        settings: dict[str, object] = {
            "deadline_s": 20.0,
            "env": process.allowed_environment(os.environ),
            "cwd": tmp_path,
            **options,
        }
        argv = (sys.executable, "-I", "-S", "-c", script, *arguments)
        return process.run(argv, **settings)  # type: ignore[arg-type]

    return run


def wait_for(condition: Callable[[], bool], limit_s: float = 5.0) -> bool:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that nobody reaps (no init in a container) is dead all the same.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_status_and_both_outputs_are_kept(run: Callable[..., process.Finished]) -> None:
    finished = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (finished.status, finished.stdout_tail, finished.stderr_tail) == (3, "out\n", "err\n")
    assert not finished.is_success
    assert not finished.timed_out
    assert 0 < finished.seconds < 20


def test_success(run: Callable[..., process.Finished]) -> None:
    assert run("pass").is_success


def test_standard_input_is_empty(run: Callable[..., process.Finished]) -> None:
    assert run("import sys; print(repr(sys.stdin.read()))").stdout_tail == "''\n"


def test_a_flood_blocks_nothing_and_only_its_end_is_kept(
    run: Callable[..., process.Finished],
) -> None:
    script = (
        "import sys\n"
        "for number in range(40000):\n"
        "    print('x' * 100, file=sys.stderr)\n"
        "    print('y' * 100)\n"
        "print('the end')"
    )
    finished = run(script, tail_bytes=1000)
    assert finished.is_success
    assert len(finished.stdout_tail) == 1000
    assert finished.stdout_tail.endswith("\nthe end\n")
    assert set(finished.stderr_tail) == {"x", "\n"}


def test_output_that_is_no_text_is_kept(run: Callable[..., process.Finished]) -> None:
    finished = run(r"import os; os.write(1, b'a\xff\xfeb')")
    assert finished.stdout_tail == "a\ufffd\ufffdb"


def test_a_child_that_hangs_is_ended_at_its_deadline(run: Callable[..., process.Finished]) -> None:
    finished = run("print('begun', flush=True); import time; time.sleep(60)", deadline_s=0.4)
    assert finished.timed_out
    assert not finished.cancelled
    assert not finished.is_success
    assert finished.stdout_tail == "begun\n"
    assert 0.4 <= finished.seconds < 5


@posix
def test_a_child_that_ignores_the_request_to_end_is_killed(
    run: Callable[..., process.Finished],
) -> None:
    script = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    finished = run(script, deadline_s=0.5, grace_s=0.3)
    assert finished.timed_out
    assert finished.status == -signal.SIGKILL
    assert finished.stdout_tail == "ready\n"
    assert finished.seconds < 5


@posix
def test_a_child_may_end_in_its_own_way_within_the_grace(
    run: Callable[..., process.Finished],
) -> None:
    script = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    print('cleaned up', flush=True)\n"
        "    sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "time.sleep(60)"
    )
    finished = run(script, deadline_s=0.5, grace_s=5)
    assert (finished.status, finished.stdout_tail) == (7, "cleaned up\n")
    assert finished.timed_out
    assert finished.seconds < 4


def test_another_thread_can_end_it(run: Callable[..., process.Finished]) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    finished = run("import time; time.sleep(60)", cancel=cancel)
    assert finished.cancelled
    assert not finished.timed_out
    assert finished.seconds < 5


@posix
def test_grandchildren_end_with_it(run: Callable[..., process.Finished], tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "if sys.argv[2] == 'hang': time.sleep(60)\n"
    )
    for how in ("hang", "leave"):
        note = tmp_path / how
        finished = run(script, str(note), how, deadline_s=1.0)
        assert finished.timed_out == (how == "hang")
        assert finished.seconds < 5, "the grandchild's open pipe must not hold the harness up"
        assert wait_for(lambda note=note: not is_alive(int(note.read_text())))  # type: ignore[misc]


@posix
def test_a_grandchild_that_left_the_group_does_not_hold_it_up(
    run: Callable[..., process.Finished], tmp_path: Path
) -> None:
    script = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    time.sleep(60)\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "print('done', flush=True)"
    )
    finished = run(script, str(tmp_path / "note"))
    os.kill(int((tmp_path / "note").read_text()), signal.SIGKILL)
    assert finished.is_success
    assert finished.stdout_tail == "done\n"
    assert finished.seconds < 6


@posix
def test_the_signal_that_ended_it_is_told(run: Callable[..., process.Finished]) -> None:
    finished = run("import os; os.abort()")
    assert finished.status == -signal.SIGABRT
    assert not finished.timed_out


def test_what_cannot_be_started_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011 (its kind differs between platforms)
        process.run((str(tmp_path / "absent"),), deadline_s=5, env={}, cwd=tmp_path)


@posix
def test_an_interrupt_of_the_harness_ends_the_child(
    run: Callable[..., process.Finished], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = tmp_path / "note"
    script = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"

    sleep = time.sleep

    def interrupted(seconds: float) -> None:
        if note.exists() and note.read_text():
            monkeypatch.undo()
            raise KeyboardInterrupt
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(script, str(note))
    assert not is_alive(int(note.read_text()))


@posix
def test_a_long_lived_child_is_ended_with_its_group(tmp_path: Path) -> None:
    script = "import os, time; os.fork(); print(os.getpid(), flush=True); time.sleep(60)"
    child = process.start(
        (sys.executable, "-I", "-S", "-c", script),
        env=process.allowed_environment(os.environ),
        cwd=tmp_path,
        stdout=process.PIPE,
    )
    assert child.stdout is not None
    with child.stdout as lines:
        pids = {int(lines.readline()), int(lines.readline())}
        process.end_group(child.pid)
        assert child.wait(timeout=5) == -signal.SIGTERM
    assert child.pid in pids
    assert wait_for(lambda: not any(is_alive(pid) for pid in pids))
    process.end_group(child.pid)  # gone already: nothing happens


@posix
def test_a_child_inherits_only_the_descriptors_it_is_given(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    argv = (sys.executable, "-I", "-S", "-c", f"import os; os.write({writing}, b'result')")
    child = process.start(argv, env={}, cwd=tmp_path, pass_fds=(writing,))
    os.close(writing)
    assert os.read(reading, 100) == b"result"
    os.close(reading)
    assert child.wait(timeout=10) == 0


def test_only_allowed_variables_pass() -> None:
    source = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "1",
        "https_proxy": "http://proxy",
        "SSL_CERT_FILE": "/certs.pem",
        "LD_LIBRARY_PATH": "/lib",
        "PYTHONPATH": "/surprise",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_INDEX_URL": "http://elsewhere",
        "TORCH_LOGS": "dynamo",
        "LD_PRELOAD": "/spy.so",
    }
    assert set(process.allowed_environment(source)) == {
        "PATH", "HOME", "LC_ALL", "CUDA_VISIBLE_DEVICES", "https_proxy", "SSL_CERT_FILE",
        "LD_LIBRARY_PATH",
    }  # fmt: skip


def test_more_can_be_allowed_by_name_and_by_prefix_and_overridden() -> None:
    source = {"PATH": "/bin", "TORCH_LOGS": "dynamo", "TORCHDYNAMO_X": "1", "OTHER": "2"}
    kept = process.allowed_environment(
        source, allow=("TORCH_LOGS", "TORCHDYNAMO_*"), overrides={"PATH": "/usr/bin", "NEW": "3"}
    )
    assert kept == {"PATH": "/usr/bin", "TORCH_LOGS": "dynamo", "TORCHDYNAMO_X": "1", "NEW": "3"}
