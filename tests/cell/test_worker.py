"""The worker in two real cells: what a case does to its process never reaches its neighbours or us."""

from __future__ import annotations

import os
import re
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from harness import process
from harness.cell_server import CellServer, ServerDied, cell_environment
from harness.live_cell import LiveCell
from harness.plan import Probe
from tests.cell.bench import (
    HOSTILE,
    PATIENCE_S,
    ROOT,
    Bench,
    Built,
    is_alive,
    may_mount,
    processes_with,
    read_case,
    small_disk,
    wait_until,
)
from tests.cell.conftest import OLDEST

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cell

MEGABYTE = 1_000_000

in_the_oldest = pytest.mark.parametrize("built", [OLDEST], indirect=True, scope="session")


# -------------------------------------------------------------------------------- the warm server


def threads_of(bench: Bench) -> int:
    return len(list(Path(f"/proc/{bench.server._child.pid}/task").iterdir()))


def test_the_server_has_one_thread_when_it_is_ready(bench: Bench) -> None:
    assert bench.server.ready["failure"] == ""
    assert bench.server.ready["fork"] is True
    assert bench.server.ready["threads"] == 1


def test_the_server_has_one_thread_after_it_compiled_with_inductor(bench: Bench) -> None:
    seen = bench.probe(ROOT / "cases/gate/decorator.py", "inductor")
    assert (seen["verdict"], seen["isolation"]) == ("full", "fork")
    assert threads_of(bench) == 1
    after = bench.probe(ROOT / "cases/gate/function_call.py", "aot")
    assert (after["verdict"], after["isolation"]) == ("full", "fork")


# ----------------------------------------------------------------------- the same in a fresh process


class Fresh:
    """The probes in fresh processes, which take seconds each: two at once, and the one asked for first."""

    def __init__(self, bench: Bench, pool: ThreadPoolExecutor) -> None:
        self._bench, self._pool = bench, pool
        self._futures: dict[tuple[str, str], Future[dict[str, Any]]] = {}

    def probe(self, file: str, path: str) -> dict[str, Any]:
        """file: below the root of the project."""
        hostile = [(f"tests/fixtures/cases/{name}.py", "dynamo") for name in FRESH_TOO]
        for key in [(file, path), *hostile, *((f"cases/{case}.py", path) for case, path in SAME)]:
            if key not in self._futures:
                self._futures[key] = self._pool.submit(self._probe, *key)
        return dict(self._futures[file, path].result())

    def _probe(self, file: str, path: str) -> dict[str, Any]:
        deadline_s = 10.0 if Path(file).stem in ENDLESS else PATIENCE_S
        return self._bench.probe(ROOT / file, path, isolation="process", deadline_s=deadline_s)

    @property
    def is_busy(self) -> bool:
        return not all(future.done() for future in self._futures.values())


@pytest.fixture(scope="session")
def fresh(bench: Bench) -> Iterator[Fresh]:
    with ThreadPoolExecutor(2) as pool:
        yield Fresh(bench, pool)
        pool.shutdown(cancel_futures=True)


SAME = {
    # case, path: the verdict with torch 2.0, with 2.15
    ("gate/decorator", "inductor"): ("full", "full"),
    ("gate/function_call", "aot"): ("full", "full"),
    ("breaks/explicit", "dynamo"): ("partial", "partial"),
    ("breaks/print_call", "dynamo"): ("partial", "partial"),
    ("breaks/fullgraph", "dynamo"): ("error", "error"),
    ("fallback/disabled_helper", "dynamo"): ("uncompiled", "uncompiled"),
    ("wrong/lost_closure_mutation", "dynamo"): ("partial", "wrong"),
    ("api/flex_attention", "dynamo"): ("unavailable", "full"),
    ("models/batch_norm", "aot"): ("full", "full"),
}


@pytest.mark.parametrize(("case", "path"), SAME)
def test_a_fork_and_a_fresh_process_see_the_same(
    bench: Bench, fresh: Fresh, case: str, path: str
) -> None:
    forked = bench.probe(ROOT / f"cases/{case}.py", path)
    alone = fresh.probe(f"cases/{case}.py", path)
    assert (forked.pop("isolation"), alone.pop("isolation")) == ("fork", "process")
    assert comparable(forked) == comparable(alone)
    # A later torch may see it otherwise, but has to see it the same both ways.
    known = dict(zip(("2.0", "2.15"), SAME[case, path], strict=True))
    series = ".".join(bench.built.cell.torch.split(".")[:2])
    assert forked["verdict"] == known.get(series, forked["verdict"])


def comparable(seen: dict[str, Any]) -> dict[str, Any]:
    """A result without what may differ from one look to the next."""
    return {
        key: value for key, value in seen.items() if key not in ("seconds", "peak_bytes", "output")
    }


# ------------------------------------------------------------------------------------ hostile cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What becomes of a hostile case. message, output: what stands somewhere in them."""

    verdict: str
    message: str = ""
    output: str = ""
    signal: str = ""
    exit_status: int | None = None
    raised: tuple[str, ...] | None = None


def raises(kind: str, message: str = "") -> Expected:
    return Expected(verdict="error", message=message, raised=(kind,))


def wrong(message: str) -> Expected:
    return Expected(verdict="wrong", message=message)


FULL = Expected(verdict="full")

ENDS: dict[str, Expected] = {
    "adds_in_another_order": FULL,
    "asserts": wrong("one and nothing is not two"),
    "asserts_through_torch": wrong("Tensor-likes are not close"),
    "changes_folder": FULL,
    "changes_its_mind": Expected(verdict="invalid", message="two eager runs differ"),
    "closes_streams": FULL,
    "computes_in_half": wrong("distance to a float64 run"),
    "deletes_its_folder": FULL,
    "differs_at_length": wrong("eager has ['keykeykey"),
    "eats_memory": Expected(verdict="out-of-memory", message="beyond its bound of 0.279 GiB"),
    "exits_in_check": raises("SystemExit"),
    "exits_in_run": Expected(verdict="invalid", message="eager fails: SystemExit: 0"),
    "fails_in_eager": Expected(verdict="invalid", message="eager fails: "),
    "fails_to_load": Expected(verdict="invalid", message="a_package_that_nobody_has"),
    "finds_torch_broken": raises("AttributeError", "relu"),
    "floods_captured_output": Expected(verdict="partial", output="yyyy\n"),
    "floods_output": Expected(verdict="full", output="the end of the flood\n"),
    "forgets_a_buffer": wrong("global model.seen: "),
    "forgets_a_global": wrong("global calls: eager 1, compiled 0"),
    "forgets_to_print": wrong("printed text: eager 'a line for the reader"),
    "forks_children": Expected(verdict="full", output="child: "),
    "forks_many_children": FULL,
    "gives_no_tuple": Expected(verdict="invalid", message="must return a tuple"),
    "gives_nothing": Expected(verdict="invalid", message="must return a tuple"),
    "hangs": Expected(
        verdict="timeout", message="after its deadline of", output="in wait_for_ever"
    ),
    "hangs_on": Expected(verdict="timeout", message="after its deadline of 3 s", output="in check"),
    "is_keyed_by_functions": FULL,
    "is_refused_memory": Expected(verdict="out-of-memory", message="memory"),
    "is_wrong_alone": wrong("eager 1.0, compiled 2.0"),
    "is_wrong_the_second_time": wrong("call[1] returns: "),
    "kills_itself": Expected(verdict="crash", message="SIGKILL", signal="SIGKILL"),
    "leaves_a_daemon": Expected(verdict="full", output="daemon: "),
    "leaves_from_c": Expected(
        verdict="crash", message="left with status 0 before the probe was done", exit_status=0
    ),
    "leaves_its_argument": wrong("leaves its arguments[0]: "),
    "leaves_its_list": wrong("leaves its arguments[1]: eager has [0], [1], [2], compiled [0], [1]"),
    "leaves_with_three": Expected(verdict="crash", message="os._exit(3)", exit_status=3),
    "leaves_with_zero": Expected(verdict="crash", message="os._exit(0)", exit_status=0),
    "loses_a_gradient": wrong("gradient of argument tensor 0: "),
    "loses_a_parameter_gradient": wrong("global model: eager has "),
    "needs_missing_api": Expected(verdict="unavailable", message="a_function_of_the_far_future"),
    "raises_at_length": Expected(
        verdict="error", message="outer outer", raised=("RuntimeError", "ValueError")
    ),
    "raises_deep": raises("RecursionError"),
    "raises_only_compiled": raises("KeyError", "only when compiled"),
    "raises_surrogates": Expected(
        verdict="error",
        message="half a pair: \ud800",
        output="no UTF-8: \ufffd\ufffd\n",
        raised=("RuntimeError",),
    ),
    "raises_unprintable": Expected(verdict="error", message="Unprintable"),
    "returns_another_dtype": wrong("eager tensor float32 (2,) "),
    "returns_another_value": wrong("returns['sum']: 2 of 2 elements differ"),
    "segfaults": Expected(verdict="crash", message="SIGSEGV", signal="SIGSEGV", output="string_at"),
    "stops_itself": Expected(verdict="timeout", message="after its deadline of 3 s"),
    "tells_of_the_machine": raises("RuntimeError", "~/some/file <tmp>/scratch"),
    "uses_multiprocessing": FULL,
    "writes_to_descriptors": FULL,
}

ENDS_ITS_SERVER = {"kills_its_parent", "crashes_its_parent"}

ENDLESS = {"hangs", "hangs_on", "stops_itself"}

TIGHT = {"eats_memory", "forks_many_children"}
"""Those that are to keep within 300 MB of their own."""

FRESH_TOO = (
    "closes_streams",
    "forks_children",
    "hangs",
    "leaves_a_daemon",
    "leaves_with_three",
    "segfaults",
    "tells_of_the_machine",
    "writes_to_descriptors",
)
"""Those that meet something else in a fresh process: other descriptors, another parent, no fork."""


def test_every_hostile_case_is_expected_to_end_somehow() -> None:
    assert {file.stem for file in HOSTILE.glob("*.py")} == set(ENDS) | ENDS_ITS_SERVER


@pytest.mark.parametrize("name", ENDS)
def test_a_hostile_case_ends_as_it_should_and_harms_nobody(
    bench: Bench, fresh: Fresh, name: str
) -> None:
    seen = probe_hostile(bench, name)
    expect(ENDS[name], seen)
    assert [path.name for path in bench.folder.glob("probe-*") if not fresh.is_busy] == []


@pytest.mark.parametrize("name", FRESH_TOO)
def test_a_hostile_case_ends_the_same_in_a_fresh_process(
    bench: Bench, fresh: Fresh, name: str
) -> None:
    seen = fresh.probe(f"tests/fixtures/cases/{name}.py", "dynamo")
    assert seen["isolation"] == "process"
    expect(ENDS[name], seen)
    assert_none_is_left(name, seen)
    assert not bench.server.is_dead


def probe_hostile(bench: Bench, name: str) -> dict[str, Any]:
    seen = bench.probe(
        HOSTILE / f"{name}.py",
        memory_bytes=(300 if name in TIGHT else 4000) * MEGABYTE,
        deadline_s=3.0 if name in ENDLESS else PATIENCE_S,
    )
    assert seen["isolation"] == "fork"
    assert_none_is_left(name, seen)
    assert not bench.server.is_dead
    assert threads_of(bench) == 1
    return seen


def assert_none_is_left(name: str, seen: dict[str, Any]) -> None:
    """What a case has started is gone when its result is there. It prints the numbers."""
    for pid in re.findall(r"^(?:daemon|child): (\d+)$", seen["output"], re.MULTILINE):
        assert not is_alive(int(pid)), f"{name} left process {pid} behind"


def expect(expected: Expected, seen: dict[str, Any]) -> None:
    told = (
        f"{seen['message']!r:.1000}\n{seen.get('traceback', '')[-2000:]}\n{seen['output'][-3000:]}"
    )
    assert seen["verdict"] == expected.verdict, told
    assert expected.message in seen["message"], told
    assert expected.output in seen["output"], told
    assert seen.get("signal", "") == expected.signal, told
    assert seen.get("exit_status") == expected.exit_status, told
    if expected.raised is not None:
        assert tuple(one["type"] for one in seen["raised"]) == expected.raised, told
    # A result is a line of the journal, which nobody wants to be of megabytes.
    assert len(repr(seen)) < 100_000


# --------------------------------------------------------------------------- when the server goes too


@pytest.fixture
def live(built: Built, tmp_path: Path) -> Iterator[LiveCell]:
    env = cell_environment(os.environ, built.environment.python, "cpu")
    cell = LiveCell(
        built.environment.python, env, tmp_path, fork=True, memory_bytes=4000 * MEGABYTE
    )
    yield cell
    cell.end()


def probe_of(built: Built, name: str, isolation: Literal["fork", "process"]) -> Probe:
    return Probe(
        cell=built.cell,
        case=read_case(HOSTILE / f"{name}.py"),
        path="dynamo",
        deadline_s=PATIENCE_S,
        isolation=isolation,
    )


@pytest.mark.parametrize(
    ("name", "isolation", "how"),
    [("crashes_its_parent", "fork", "SIGSEGV"), ("kills_its_parent", "process", "SIGKILL")],
)
def test_a_server_that_a_case_killed_is_replaced(
    live: LiveCell,
    built: Built,
    tmp_path: Path,
    name: str,
    isolation: Literal["fork", "process"],
    how: str,
) -> None:
    with pytest.raises(ServerDied) as death:
        live.probe(probe_of(built, name, isolation))
    assert death.value.signal == how
    assert live.probe(probe_of(built, "is_keyed_by_functions", "fork"))["verdict"] == "full"
    # The case itself would have gone on for ten minutes; so would a process beside it.
    assert wait_until(lambda: processes_with(str(tmp_path / "server-1")) == [])


@in_the_oldest
def test_a_server_that_is_closed_takes_its_probes_with_it(live: LiveCell, built: Built) -> None:
    probes = [probe_of(built, "hangs", "fork"), probe_of(built, "hangs", "process")]
    with ThreadPoolExecutor(len(probes)) as pool:
        futures = [pool.submit(live.probe, probe) for probe in probes]
        assert wait_until(lambda: live._server is not None)
        server = live._server
        assert server is not None
        assert server.ready["failure"] == ""
        mark = str(server._scratch)
        assert wait_until(lambda: len(processes_with(mark)) == 3)
        live.end()
        assert wait_until(lambda: processes_with(mark) == [])
        for future in futures:
            with pytest.raises(ServerDied):
                future.result()


@in_the_oldest
@pytest.mark.skipif(not may_mount(), reason="only root can mount a small disk")
def test_a_full_disk_is_no_verdict_on_a_case(built: Built, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=20") as disk:
        env = cell_environment(os.environ, built.environment.python, "cpu")
        server = CellServer(built.environment.python, env, disk, fork=True)
        try:
            assert server.ready["failure"] == ""
            rubbish = fill_with_files(disk)
            bench = Bench(built=built, server=server, folder=disk)
            seen = bench.probe(HOSTILE / "is_keyed_by_functions.py")
            assert (seen["verdict"], seen["not_run"]) == ("not-run", "disk full")
            for file in rubbish:
                file.unlink()
            assert bench.probe(HOSTILE / "is_keyed_by_functions.py")["verdict"] == "full"
        finally:
            server.close()


def fill_with_files(folder: Path) -> list[Path]:
    """Files until the disk takes no more."""
    made: list[Path] = []
    while True:
        made.append(folder / f"rubbish-{len(made)}")
        try:
            made[-1].touch()
        except OSError:
            return made[:-1]


# ------------------------------------------------------------------------------------- run alone


def run_alone(built: Built, file: Path, *arguments: str) -> process.Finished:
    """`python <file>` with the cell's Python, as a reader of the reports does."""
    python = built.environment.python
    return process.run(
        (str(python), str(file), *arguments),
        deadline_s=10 * PATIENCE_S,
        env=cell_environment(os.environ, python, "cpu"),
        cwd=Path("/"),
    )


def test_a_case_run_alone_prints_a_verdict_for_each_path(built: Built) -> None:
    finished = run_alone(built, ROOT / "cases/gate/decorator.py")
    assert finished.status == 0, finished.stderr_tail
    assert re.fullmatch(
        r"dynamo: full \(1 graph, \d operations\)\n"
        r"aot: full \(1 graph, \d operations\)\n"
        r"inductor: full \(1 graph, \d operations\)\n",
        finished.stdout_tail,
    )


def test_a_wrong_case_run_alone_fails(built: Built) -> None:
    finished = run_alone(built, HOSTILE / "is_wrong_alone.py")
    assert finished.status == 1, finished.stderr_tail
    assert finished.stdout_tail.startswith(
        "dynamo: wrong (1 graph, 1 operations): call[0] returns: "
    )


def test_a_case_run_alone_knows_its_paths(built: Built) -> None:
    finished = run_alone(built, ROOT / "cases/gate/decorator.py", "dinamo")
    assert finished.status == 1
    assert "dinamo is no path; there are: dynamo, aot" in finished.stderr_tail
