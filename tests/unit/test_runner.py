"""A run over fake cells: every probe is settled, the right one is blamed, and every bound holds."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.specifiers import SpecifierSet

from harness import cell_server, runner
from harness.errors import ExitStatus, HarnessError
from harness.findings import judge
from harness.journal import Journal, read_records
from harness.matrix import Device
from harness.results import Cause, Expectation, NotRunReason, Observation, Verdict
from harness.worker import PROTOCOL
from tests.unit.worlds import (
    World,
    failed,
    has_ended,
    make_case,
    make_cell,
    make_interpreter,
    most_at_once,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.corpus import Case

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the fake server is a script with a #! line"
    ),
]

CELLS = (make_cell("3.10", "2.4"), make_cell("3.12", "2.3"), make_cell("3.12", "2.4"))
ALL = ("dynamo", "aot", "inductor")
DIE = {"do": "die"}
WRONG = {"seen": {"verdict": "wrong", "message": "2 of 3 elements differ"}}
UNKNOWN = {"seen": {"verdict": "error", "message": "?", "raised": [], "traceback": ""}}


@pytest.fixture(autouse=True)
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # no test cuts the power


def cases(*names: str, **changes: Any) -> tuple[Case, ...]:
    return tuple(make_case(f"group/{name}", **changes) for name in names)


def times_out() -> dict[str, Any]:
    return {"seen": {"verdict": "timeout", "message": "ended after its deadline of 1 s"}}


# --------------------------------------------------------------------------------- everything settled


def test_every_probe_of_every_cell_is_settled(tmp_path: Path) -> None:
    world = World(tmp_path, cells=CELLS, cases=cases("a", "b", paths=ALL))
    world.run()
    wanted = {f"{cell.id} group/{name} {path}" for cell in CELLS for name in "ab" for path in ALL}
    assert world.verdicts == dict.fromkeys(wanted, "full")
    assert len(world.progress.settled_probes) == len(wanted)
    assert sorted(world.progress.done) == sorted(cell.id for cell in CELLS)
    for cell in CELLS:
        record = world.cell_records[cell.id]
        assert record.status == "measured"
        assert record.python_version == f"{cell.python}.7"
        assert record.torch_version == f"{cell.torch}+cpu"
        assert (record.environment, record.machine) == (f"environment-of-{cell.id}", "m1")
        assert (record.order, record.index) == (cell.order, "pytorch-cpu")
    assert sorted(world.store.released) == sorted(cell.id for cell in CELLS)


def test_an_observation_says_where_and_of_what_it_was_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.python.does(
        "gate/decorator dynamo",
        {
            "seen": {
                "verdict": "partial",
                "message": "1 graph break: print",
                "seconds": 0.25,
                "peak_bytes": 123,
                "graphs": 2,
                "ops": 7,
                "recompiles": 1,
                "breaks": [{"reason": "print", "code": "GB0059", "file": "x.py", "line": 3}],
                "output": "hello",
            }
        },
    )
    world.run()
    found = world.observations["gate/decorator dynamo"]
    assert (found.verdict, found.cell, found.isolation) == (Verdict.PARTIAL, "3.12-2.4", "fork")
    assert (found.environment, found.protocol) == ("environment-of-3.12-2.4", PROTOCOL)
    assert found.case_digest == "digest-of-gate/decorator"
    assert found.at == "2026-12-01T12:00:00.000Z"
    assert (found.seconds, found.peak_bytes, found.output) == (0.25, 123, "hello")
    assert (found.graphs, found.ops, found.recompiles) == (2, 7, 1)
    assert (found.breaks[0].code, found.breaks[0].line) == ("GB0059", 3)


def test_what_a_run_takes_from_the_machine_is_gone_after_it(tmp_path: Path) -> None:
    world = World(tmp_path, cells=CELLS[:2])
    world.run()
    for python in world.pythons.values():
        (start,) = [event for event in python.events if event["event"] == "start"]
        assert has_ended(start["pid"])
        assert not Path(start["cwd"]).exists()


def test_isolation_process_asks_for_a_fresh_process_everywhere(tmp_path: Path) -> None:
    world = World(tmp_path, isolation="process")
    world.run()
    (start,) = [event for event in world.python.events if event["event"] == "start"]
    assert start["argv"][-1] == "process"
    assert world.python.looks() == ["process"]


# ---------------------------------------------------------------------------------- a server that dies


def test_only_the_culprit_is_blamed_when_a_server_dies(tmp_path: Path) -> None:
    world = World(tmp_path, cases=cases("bystander", "culprit", "later", "last"))
    world.python.does("group/bystander dynamo", {"do": "silence"})
    segv = {"do": "die", "signal": int(signal.SIGSEGV)}
    world.python.does("group/culprit dynamo", {**segv, "after": 0.2}, segv, segv)
    world.run()
    assert world.verdicts == {
        "group/bystander dynamo": "full",
        "group/culprit dynamo": "crash",
        "group/later dynamo": "full",
        "group/last dynamo": "full",
    }
    crash = world.observations["group/culprit dynamo"]
    assert crash.signal == "SIGSEGV"
    assert "SIGSEGV" in crash.message
    assert "Fatal Python error" in crash.output
    assert (
        len(world.python.looks("group/culprit dynamo")) == 3
    )  # with others, alone, in a fresh process
    assert len(world.python.looks("group/bystander dynamo")) == 2


def test_suspects_are_run_again_one_at_a_time(tmp_path: Path) -> None:
    names = ("a", "b", "c", "d")
    world = World(tmp_path, cases=cases(*names), means={"cores": 4})
    for name in names:
        world.python.does(f"group/{name} dynamo", {"do": "silence"}, {"after": 0.05})
    world.python.does("group/d dynamo", {**DIE, "after": 0.3}, {"after": 0.05})
    world.run()
    assert set(world.verdicts.values()) == {"full"}
    second = world.python.starts[1]
    again = [event for event in world.python.events if event["pid"] == second]
    assert len([event for event in again if event["event"] == "begin"]) == 4
    assert most_at_once(again) == 1


def test_a_crash_of_the_server_is_looked_at_again_in_a_fresh_process(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.python.does("gate/decorator dynamo", DIE, DIE, {"seen": {"verdict": "partial"}})
    world.run()
    assert world.python.looks() == ["fork", "fork", "process"]
    found = world.observations["gate/decorator dynamo"]
    assert (found.verdict, found.isolation) == (Verdict.PARTIAL, "process")


def test_a_probe_that_another_one_takes_along_in_its_second_look_gets_another(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, cases=cases("doubted", "killer"))
    world.python.does("group/doubted dynamo", WRONG, {"do": "silence"})
    world.python.does("group/killer dynamo", {**DIE, "after": 0.3})
    world.run()
    assert world.verdicts == {"group/doubted dynamo": "full", "group/killer dynamo": "full"}


# -------------------------------------------------------------------------- a server that never comes up


@pytest.mark.parametrize(("what", "log"), [("leave", "no torch worth"), ("die", "Fatal Python")])
def test_a_server_that_never_comes_up_is_no_probes_fault(
    tmp_path: Path, what: str, log: str
) -> None:
    world = World(tmp_path, cells=CELLS[:2], cases=cases("a", "b", "c"))
    world.pythons[CELLS[0].id].script["starts"] = [what]
    world.run()
    record = world.cell_records[CELLS[0].id]
    assert (record.status, record.reason) == ("not-run", NotRunReason.WORKER_FAILED)
    assert "did not come up" in record.detail
    assert log in record.evidence
    assert {probe.split()[0] for probe in world.verdicts} == {CELLS[1].id}
    assert world.progress.skipped_probes == 3
    assert len(world.pythons[CELLS[0].id].starts) == 1


def test_a_server_that_hangs_while_it_starts_is_no_probes_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_READY_DEADLINE_S", 0.2)
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    world = World(tmp_path)
    world.python.script["starts"] = ["never"]
    world.run()
    record = world.cell_records["3.12-2.4"]
    assert record.reason is NotRunReason.WORKER_FAILED
    assert "did not answer in 0.2 s" in record.evidence


def test_a_server_that_does_not_come_up_again_costs_only_what_was_left(tmp_path: Path) -> None:
    world = World(tmp_path, cases=cases("a", "b", "c"), means={"cores": 1})
    world.python.script["starts"] = ["ready", "leave"]
    world.python.does("group/b dynamo", DIE)
    world.run()
    found = world.observations
    assert world.verdicts == {
        "group/a dynamo": "full",
        "group/b dynamo": "not-run",
        "group/c dynamo": "not-run",
    }
    assert found["group/b dynamo"].not_run is NotRunReason.WORKER_FAILED
    assert world.cell_records["3.12-2.4"].status == "measured"
    assert len(world.python.starts) == 2
    # What was measured stays in the findings, and the next run measures the rest.
    world.python.script["starts"] = []
    world.run()
    assert set(world.verdicts.values()) == {"full"}
    assert world.python.looks("group/a dynamo") == ["fork"]


# -------------------------------------------------------------------------------------- second looks


@pytest.mark.parametrize(
    "first",
    [
        WRONG,
        times_out(),
        UNKNOWN,
        {"seen": {"verdict": "crash", "signal": "SIGSEGV"}},
        {"seen": {"verdict": "invalid", "message": "eager fails"}},
    ],
    ids=lambda first: first["seen"]["verdict"],
)
def test_what_a_fork_may_be_to_blame_for_is_looked_at_again(
    tmp_path: Path, first: dict[str, Any]
) -> None:
    world = World(tmp_path)
    world.python.does("gate/decorator dynamo", first, {"seen": {"message": "the second look"}})
    world.run()
    assert world.python.looks() == ["fork", "process"]
    found = world.observations["gate/decorator dynamo"]
    assert (found.verdict, found.message) == (Verdict.FULL, "the second look")
    assert found.isolation == "process"
    journal = read_records(world.journal_file).records
    assert len([record for record in journal if isinstance(record, Observation)]) == 1


def test_a_second_look_that_agrees_is_believed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.python.does("gate/decorator dynamo", WRONG, WRONG)
    world.run()
    assert world.verdicts == {"gate/decorator dynamo": "wrong"}


@pytest.mark.parametrize(
    "first",
    [
        {"seen": {"verdict": "uncompiled"}},
        {"seen": {"verdict": "partial"}},
        {
            "seen": {
                "verdict": "error",
                "raised": [
                    {
                        "type": "RuntimeError",
                        "message": "Dynamo is not supported on Python 3.12+",
                        "bases": [],
                        "frame": "",
                    }
                ],
            }
        },
        {**WRONG, "seen": {**WRONG["seen"], "isolation": "process"}},
    ],
    ids=["uncompiled", "partial", "a known cause", "a fresh process"],
)
def test_what_is_clear_is_looked_at_once(tmp_path: Path, first: dict[str, Any]) -> None:
    world = World(tmp_path)
    world.python.does("gate/decorator dynamo", first)
    world.run()
    assert world.python.looks() == ["fork"]
    assert world.verdicts == {"gate/decorator dynamo": first["seen"]["verdict"]}


def test_what_the_baseline_expects_is_not_looked_at_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    known = Expectation(verdict=Verdict.WRONG, cause=Cause.WRONG_RESULT)
    world.expect({"gate/decorator dynamo": known})
    world.python.does("gate/decorator dynamo", WRONG)
    world.run()
    assert world.python.looks() == ["fork"]
    assert world.verdicts == {"gate/decorator dynamo": "wrong"}


@pytest.mark.parametrize(
    "known",
    [
        Expectation(verdict=Verdict.FULL),
        Expectation(verdict=Verdict.WRONG, cause=Cause.UNKNOWN),
        Expectation(verdict=Verdict.CRASH, cause=Cause.CRASH),
    ],
    ids=["full", "another cause", "another verdict"],
)
def test_what_the_baseline_does_not_expect_is(tmp_path: Path, known: Expectation) -> None:
    world = World(tmp_path)
    world.expect({"gate/decorator dynamo": known})
    world.python.does("gate/decorator dynamo", WRONG)
    world.run()
    assert world.python.looks() == ["fork", "process"]


def test_a_second_look_that_ends_the_server_leaves_the_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.python.does("gate/decorator dynamo", WRONG, DIE, WRONG, DIE)
    world.run()
    assert world.verdicts == {"gate/decorator dynamo": "wrong"}
    assert world.python.looks() == ["fork", "process", "fork", "process"]


# ----------------------------------------------------------------------------------------- not running


def test_what_is_known_is_not_measured_again(tmp_path: Path) -> None:
    world = World(tmp_path, cases=cases("a", "b"))
    world.run()
    before = world.journal_file.read_bytes()
    world.store.found.add("3.12-2.4")
    world.run()
    assert world.journal_file.read_bytes() == before
    assert world.store.prepared == ["3.12-2.4"]
    assert len(world.python.starts) == 1
    assert [known for *_, known in world.progress.settled_probes] == [False, False, True, True]


def test_where_only_some_is_known_the_rest_is_measured(tmp_path: Path) -> None:
    world = World(tmp_path, cases=cases("a"))
    world.run()
    world.cases = cases("a", "b")
    world.store.found.add("3.12-2.4")
    world.run()
    assert world.verdicts == {"group/a dynamo": "full", "group/b dynamo": "full"}
    assert world.python.looks("group/a dynamo") == ["fork"]
    settled = [probe for _, probe, *_ in world.progress.settled_probes]
    assert settled == ["group/a", "group/a", "group/b"]


@pytest.mark.parametrize("what", ["case", "environment", "protocol"])
def test_what_was_measured_of_something_else_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    world = World(tmp_path, cases=cases("a"))
    world.run()
    if what == "case":
        world.cases = cases("a", digest="another")
    elif what == "environment":
        world.store.environments["3.12-2.4"] = replace(
            world.store.environments["3.12-2.4"], id="another"
        )
    else:
        monkeypatch.setattr(runner, "PROTOCOL", PROTOCOL + 1)
    world.run()
    assert world.python.looks() == ["fork", "fork"]


def test_what_needs_more_than_the_cell_has_is_unavailable_without_running(tmp_path: Path) -> None:
    needy = (
        make_case("a/python", python=SpecifierSet(">=3.14")),
        make_case("a/torch", torch=SpecifierSet("<2.4")),
    )
    world = World(tmp_path, cases=needy)
    world.run()
    assert world.verdicts == {"a/python dynamo": "unavailable", "a/torch dynamo": "unavailable"}
    assert world.observations["a/python dynamo"].message == "needs Python >=3.14"
    assert world.python.starts == []
    assert world.store.released == ["3.12-2.4"]


def test_what_is_for_another_device_is_not_run_and_says_so(tmp_path: Path) -> None:
    both = (make_cell(), make_cell(device=Device.CUDA, order=99))
    for_one = (make_case("a/cpu", devices=("cpu",)), make_case("a/cuda", devices=("cuda",)))
    world = World(tmp_path, cells=both, cases=for_one, means={"has_cuda": True})
    world.run()
    found = world.observations
    assert world.verdicts == {
        "3.12-2.4 a/cpu dynamo": "full",
        "3.12-2.4 a/cuda dynamo": "not-run",
        "3.12-2.4-cuda a/cpu dynamo": "not-run",
        "3.12-2.4-cuda a/cuda dynamo": "full",
    }
    assert found["3.12-2.4 a/cuda dynamo"].not_run is NotRunReason.NO_DEVICE
    assert found["3.12-2.4-cuda a/cpu dynamo"].not_run is NotRunReason.WRONG_DEVICE
    on_cuda = world.pythons["3.12-2.4-cuda"]
    assert on_cuda.looks() == ["process"]


def test_an_environment_that_fails_makes_its_cell_not_run_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, cells=CELLS, cases=cases("a", paths=ALL))
    world.store.failing[CELLS[1].id] = failed(NotRunReason.DISK_FULL)
    world.run()
    record = world.cell_records[CELLS[1].id]
    assert (record.status, record.reason) == ("not-run", NotRunReason.DISK_FULL)
    assert record.detail == "uv could not install it"
    assert record.evidence == "error: no such wheel"
    assert (record.environment, record.packages) == ("", {})
    assert len(world.verdicts) == 6
    assert world.progress.skipped_probes == 3
    assert len(world.progress.done) == 3
    findings = judge(read_records(world.journal_file).records, world.baseline)
    assert findings.cells[1].reason is NotRunReason.DISK_FULL


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        (
            {"record_not_run": "no runner is named"},
            NotRunReason.NO_RUNNER,
            "no runner is named",
        ),
        (
            {"interpreters": {}},
            NotRunReason.NO_INTERPRETER,
            "no interpreter for Python 3.12 on this machine, and uv could not download one",
        ),
    ],
)
def test_a_cell_that_cannot_be_looked_into_says_why(
    tmp_path: Path, changes: dict[str, Any], reason: NotRunReason, detail: str
) -> None:
    world = World(tmp_path, means=changes)
    world.run()
    record = world.cell_records["3.12-2.4"]
    assert (record.status, record.reason, record.detail) == ("not-run", reason, detail)
    assert world.store.prepared == []
    assert world.verdicts == {}


def test_what_uv_says_of_a_python_that_it_cannot_download_is_evidence(tmp_path: Path) -> None:
    world = World(tmp_path, means={"interpreters": {}})
    world.run()
    assert world.cell_records["3.12-2.4"].evidence == "error: no download for 3.12"


def test_a_python_that_is_only_used_where_found_is_not_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path, cells=(make_cell("3.15"),))
    wheels = {"linux-x86_64": ("3.15",)}
    releases = tuple(replace(release, wheels=wheels) for release in world.matrix.releases)
    world.matrix = replace(world.matrix, releases=releases)
    world.run()
    record = world.cell_records["3.15-2.4"]
    assert record.reason is NotRunReason.NO_INTERPRETER
    assert world.fetcher.asked == []


def test_no_wheel_and_no_device_are_told_without_touching_the_store(tmp_path: Path) -> None:
    cells = (make_cell("3.15"), make_cell(device=Device.CUDA))
    world = World(tmp_path, cells=cells, means={"interpreters": {"3.15": make_interpreter("3.15")}})
    world.run()
    reasons = {name: record.reason for name, record in world.cell_records.items()}
    assert reasons == {
        "3.15-2.4": NotRunReason.NO_WHEEL,
        "3.12-2.4-cuda": NotRunReason.NO_DEVICE,
    }
    assert world.store.prepared == []


def test_an_adopted_environment_is_run_in_as_it_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    adopted = world.store.environments.pop("3.12-2.4")
    world.means["adopted"] = {"3.12-2.4": adopted}
    world.run()
    assert world.verdicts == {"gate/decorator dynamo": "full"}
    assert world.store.prepared == []


# ------------------------------------------------------------------------------------------- stopping


def hanging(tmp_path: Path) -> World:
    """Two cells in which one of three probes is answered."""
    means = {"cores": 6, "live_cells": 2}
    world = World(tmp_path, cells=CELLS[:2], cases=cases("a", "b", "c"), means=means)
    for python in world.pythons.values():
        for name in "bc":
            python.does(f"group/{name} dynamo", {"do": "silence"})
    return world


def wait_until_it_hangs(world: World) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        begun = sum(len(python.looks()) for python in world.pythons.values())
        if begun == 6 and len(world.progress.settled_probes) == 2:
            return
        time.sleep(0.01)


def assert_ended(world: World) -> None:
    for python in world.pythons.values():
        assert all(has_ended(pid) for pid in python.starts)
    assert set(world.verdicts.values()) <= {"full"}
    assert all(record.status == "measured" for record in world.cell_records.values())


def test_an_interrupt_ends_everything_and_leaves_nothing_half_recorded(tmp_path: Path) -> None:
    world = hanging(tmp_path)

    def interrupt() -> None:
        wait_until_it_hangs(world)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    before = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        world.run()
    assert time.monotonic() - before < 10
    assert world.stop.is_set()
    assert_ended(world)
    assert sorted(world.store.released) == sorted(set(world.store.prepared))
    # The next run goes on from there.
    for python in world.pythons.values():
        python.script = {}
    world.stop.clear()
    world.run()
    assert set(world.verdicts.values()) == {"full"}
    assert len(world.verdicts) == 6
    for python in world.pythons.values():
        assert len(python.looks("group/a dynamo")) == 1


def test_a_stop_from_elsewhere_ends_a_run_without_an_error(tmp_path: Path) -> None:
    world = hanging(tmp_path)
    with Journal.open(world.journal_file) as journal:
        carried_out = world.runner(journal)

        def stop() -> None:
            wait_until_it_hangs(world)
            carried_out.stop()

        threading.Thread(target=stop).start()
        carried_out.run()
    assert_ended(world)


def test_a_stop_while_servers_come_up_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_server, "_CLOSE_S", 0.1)
    world = World(tmp_path)
    world.python.script["starts"] = ["never"]
    with Journal.open(world.journal_file) as journal:
        carried_out = world.runner(journal)
        threading.Timer(0.3, carried_out.stop).start()
        before = time.monotonic()
        carried_out.run()
    assert time.monotonic() - before < 5
    assert world.verdicts == {}
    assert world.cell_records["3.12-2.4"].status == "measured"


def test_once_stopped_a_run_starts_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, cells=CELLS)
    world.stop.set()
    world.run()
    assert world.store.prepared == []
    assert world.verdicts == {}


def test_a_build_that_a_stop_cancels_is_not_recorded_as_a_failure(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store.failing["3.12-2.4"] = failed()
    world.store.pause_s = 0.2
    threading.Timer(0.1, world.stop.set).start()
    world.run()
    assert world.cell_records == {}


class FullDisk:
    """An os.write for which the disk is full from the third observation on."""

    def __init__(self) -> None:
        self.write = os.write
        self.left = 2

    def __call__(self, descriptor: int, data: bytes) -> int:
        if b'"record":"observation"' in data:
            if not self.left:
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= 1
        return self.write(descriptor, data)


def test_a_journal_that_cannot_be_written_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, cases=cases("a", "b", "c", "d"))
    world.python.does("group/a dynamo", {"do": "silence"})  # in flight when the disk is full
    monkeypatch.setattr(os, "write", FullDisk())
    before = time.monotonic()
    with pytest.raises(HarnessError, match="the disk is full") as caught:
        world.run()
    assert time.monotonic() - before < 10
    assert caught.value.status is ExitStatus.OUR_FAULT
    assert world.verdicts == {"group/b dynamo": "full", "group/c dynamo": "full"}
    assert all(has_ended(pid) for pid in world.python.starts)


# ---------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(("cores", "live_cells"), [(1, 3), (2, 2), (3, 1)])
def test_never_more_probes_than_cores_nor_more_servers_than_live_cells(
    tmp_path: Path, cores: int, live_cells: int
) -> None:
    names = ("a", "b", "c")
    means = {"cores": cores, "live_cells": live_cells}
    world = World(tmp_path, cells=CELLS, cases=cases(*names), means=means)
    for python in world.pythons.values():
        for name in names:
            python.does(f"group/{name} dynamo", {"after": 0.03, **WRONG}, {"after": 0.03})
    world.run()
    assert set(world.verdicts.values()) == {"full"}
    events = [event for python in world.pythons.values() for event in python.events]
    assert most_at_once(events) <= cores
    assert most_servers(events) <= live_cells
    if cores > 1:
        assert most_at_once(events) > 1


def most_servers(events: Sequence[dict[str, Any]]) -> int:
    now = most = 0
    for event in sorted(events, key=lambda event: event["at"]):
        now += {"start": 1, "left": -1}.get(event["event"], 0)
        most = max(most, now)
    return most


def test_at_most_two_environments_are_built_at_once(tmp_path: Path) -> None:
    cells = tuple(make_cell(p, t) for p in ("3.10", "3.12") for t in ("2.3", "2.4", "2.5"))
    world = World(tmp_path, cells=cells, cases=cases("a"), means={"live_cells": 6})
    for cell in cells:
        world.store.failing[cell.id] = failed()
    world.store.pause_s = 0.05
    world.run()
    assert world.store.most_at_once == 2
    assert len(world.cell_records) == 6
