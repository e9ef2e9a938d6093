"""Cells × cases → observations: environments are built while probes run, on all cores, with deadlines.

A thread a cell: it waits for its environment, starts the cell's server and hands it probes. Three bounds
hold over all cells: environments built at once, cells alive at once (memory), probes in flight (cores).
Whatever is learnt goes to the journal at once, so that an end at any moment loses only what is in flight.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cell_server import CellServer, ServerDied, cell_environment
from harness.diagnosis import diagnose
from harness.environments import EnvironmentFailed
from harness import journal
from harness.matrix import Device
from harness.observations import from_worker, not_run, unavailable
from harness.plan import why_not
from harness.results import Cause, CellRecord, NotRunReason, Observation, Verdict
from harness.worker import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from harness.environments import Environment, EnvironmentStore
    from harness.interpreters import Interpreter, InterpreterFetcher
    from harness.matrix import Cell, Matrix
    from harness.plan import CellPlan, Plan, Probe
    from harness.recorder import Recorder

_BUILDERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """All that a run needs of the machine, found beforehand.

    cores: probes in flight at once. live_cells: servers at once. memory_bytes: bound of one probe.
    adopted: cell id → environment that was not built by us. utc: the time now, ISO 8601.
    """

    matrix: Matrix
    store: EnvironmentStore
    interpreters: Mapping[str, Interpreter]
    fetcher: InterpreterFetcher
    env: Mapping[str, str]
    cores: int
    live_cells: int
    memory_bytes: int
    has_cuda: bool
    machine: str
    adopted: Mapping[str, Environment]
    record_not_run: str
    utc: Callable[[], str]


class Stopped(Exception):
    """The run was told to stop; unwinds a cell's thread."""


class Runner:
    """Carries out one plan. known: what earlier runs observed. stop: once set, nothing more is started."""

    def __init__(
        self,
        plan: Plan,
        means: Means,
        recorder: Recorder,
        known: Mapping[journal.Probe, Observation],
        stop: threading.Event,
    ) -> None:
        self._plan = plan
        self._means = means
        self._recorder = recorder
        self._known = known
        self._stop = stop
        self._building = threading.Semaphore(_BUILDERS)
        self._living = threading.Semaphore(means.live_cells)
        self._cores = threading.Semaphore(means.cores)
        self._servers: set[CellServer] = set()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Returns when every probe has its observation.

        Raises: KeyboardInterrupt, after ending all children; HarnessError when the journal cannot be
        written.
        """
        with ThreadPoolExecutor(self._means.live_cells + _BUILDERS, "cell") as pool:
            futures = [pool.submit(self._carry_out, cell) for cell in self._plan.cells]
            try:
                self._wait(futures)
            except BaseException:
                self.stop()
                for future in futures:
                    future.cancel()
                raise

    def stop(self) -> None:
        """Starts nothing further, and ends what runs."""
        self._stop.set()
        with self._lock:
            servers = tuple(self._servers)
        for server in servers:
            server.close()

    def _wait(self, futures: Sequence[Future[None]]) -> None:
        pending: set[Future[None]] = set(futures)
        while pending:
            # A short timeout: an interrupt reaches the main thread between two waits.
            done, pending = wait(pending, timeout=0.2, return_when="FIRST_COMPLETED")
            for future in done:
                future.result()

    # ------------------------------------------------------------------------------------ one cell

    def _carry_out(self, plan: CellPlan) -> None:
        if self._stop.is_set():
            return
        try:
            self._carry_out_cell(plan)
        except EnvironmentFailed as failure:
            if not self._stop.is_set():
                self._give_up(plan, failure)
        except Stopped:
            return
        self._recorder.cell_done(plan.cell)

    def _carry_out_cell(self, plan: CellPlan) -> None:
        """Raises: EnvironmentFailed; Stopped."""
        cell, means = plan.cell, self._means
        interpreter = self._interpreter(plan)
        standing = means.adopted.get(cell.id)
        if standing is None and interpreter is not None:
            standing = means.store.find(cell, means.matrix, interpreter)
        if standing is not None and not self._settle_without_running(plan, standing)[1]:
            return
        environment = standing
        if interpreter is not None:
            with self._building:
                self._raise_if_stopped()
                self._recorder.note(cell, "environment")
                environment = means.store.prepare(cell, means.matrix, interpreter)
        assert environment is not None
        try:
            record, todo = self._settle_without_running(plan, environment)
            if todo:
                with self._living:
                    self._probe_all(todo, record, environment)
        finally:
            means.store.release(environment)

    def _settle_without_running(
        self, plan: CellPlan, environment: Environment
    ) -> tuple[CellRecord, tuple[Probe, ...]]:
        """Records the cell, and settles all that is known beforehand; returns the probes that must run."""
        record = _cell_record(plan.cell, environment, self._means)
        self._recorder.cell(record)
        todo = []
        for probe in plan.probes:
            if self._recorder.has(probe.key):
                continue
            found = self._without_running(probe, record)
            if found is None:
                todo.append(probe)
            else:
                self._recorder.observation(found)
        return record, tuple(todo)

    def _interpreter(self, plan: CellPlan) -> Interpreter | None:
        """What the cell's environment is built with; None for an adopted one. Raises: EnvironmentFailed."""
        cell, means = plan.cell, self._means
        if means.record_not_run:
            raise EnvironmentFailed(NotRunReason.NO_RUNNER, means.record_not_run)
        if cell.id in means.adopted:
            return None
        if plan.impossible is not None:
            raise EnvironmentFailed(plan.impossible.reason, plan.impossible.detail)
        if cell.device is Device.CUDA and not means.has_cuda:
            raise EnvironmentFailed(NotRunReason.NO_DEVICE, "no CUDA device on this machine")
        return self._found_or_fetched(cell)

    def _found_or_fetched(self, cell: Cell) -> Interpreter:
        means = self._means
        found = means.interpreters.get(cell.python)
        if found is not None:
            return found
        text = f"no interpreter for Python {cell.python} on this machine"
        listed = next(p for p in means.matrix.pythons if p.version == cell.python)
        if listed.only_if_found:
            raise EnvironmentFailed(NotRunReason.NO_INTERPRETER, text)
        answer = means.fetcher.fetch(cell.python)
        if isinstance(answer, str):
            detail = f"{text}, and uv could not download one"
            raise EnvironmentFailed(NotRunReason.NO_INTERPRETER, detail, answer)
        return answer

    def _give_up(self, plan: CellPlan, failure: EnvironmentFailed) -> None:
        """The cell's record speaks for all of its probes."""
        record = replace(
            _bare_record(plan.cell, self._means),
            reason=failure.reason,
            detail=failure.detail,
            evidence=failure.evidence,
        )
        self._recorder.cell(record)
        self._recorder.skipped(len(plan.probes))

    def _without_running(self, probe: Probe, record: CellRecord) -> Observation | None:
        """What is known of a probe already, or follows from its header; None: it must run."""
        reason, text = why_not(probe, record.python_version, record.torch_version)
        now = self._means.utc()
        if reason is not None:
            return not_run(probe, reason, text, now, environment=record.environment)
        if text:
            return unavailable(probe, text, now, environment=record.environment)
        return self._known.get(
            journal.Probe(*probe.key, probe.case.digest, record.environment, PROTOCOL)
        )

    # ---------------------------------------------------------------------------------- its probes

    def _probe_all(
        self, todo: Sequence[Probe], record: CellRecord, environment: Environment
    ) -> None:
        scratch = Path(tempfile.mkdtemp(prefix="compile-matrix-"))
        try:
            with _Live(self, record, environment, scratch, todo) as live:
                with ThreadPoolExecutor(self._means.cores, "probe") as pool:
                    futures = [pool.submit(self._observe, live, probe) for probe in todo]
                    try:
                        suspects = [probe for f in futures if (probe := f.result()) is not None]
                    except BaseException:
                        for future in futures:
                            future.cancel()
                        raise
                for probe in suspects:  # each alone, so that a server that dies has one culprit
                    self._observe_alone(live, probe)
        except ServerDied as death:
            detail = "the cell's server did not come up"
            for probe in todo:
                if not self._recorder.has(probe.key):
                    found = not_run(
                        probe,
                        NotRunReason.WORKER_FAILED,
                        detail,
                        self._means.utc(),
                        environment=record.environment,
                    )
                    self._recorder.observation(replace(found, output=death.log))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _observe(self, live: _Live, probe: Probe) -> Probe | None:
        """Observes a probe; returns it instead when the server died under it and others."""
        with self._core():
            try:
                seen = live.probe(probe)
            except ServerDied:
                if self._stop.is_set():
                    raise Stopped from None
                return probe
        self._settle(live, probe, seen)
        return None

    def _observe_alone(self, live: _Live, probe: Probe) -> None:
        with self._core():
            try:
                seen = live.probe(probe)
            except ServerDied as death:
                if self._stop.is_set():
                    raise Stopped from None
                seen = {
                    "verdict": "crash",
                    "message": f"the case ended the server it was forked from ({death})",
                    "signal": death.signal,
                    "output": death.log,
                    "isolation": probe.isolation,
                }
        self._settle(live, probe, seen)

    def _settle(self, live: _Live, probe: Probe, seen: Mapping[str, Any]) -> None:
        """Believes what was seen, or looks again: in a fresh process, where a fork may be to blame."""
        found = live.observation(probe, seen)
        if found.isolation == "fork" and _needs_second_look(found):
            with self._core():
                try:
                    again = live.probe(replace(probe, isolation="process"))
                except ServerDied:
                    if self._stop.is_set():
                        raise Stopped from None
                    again = dict(seen)
            found = live.observation(probe, again)
        self._recorder.observation(found)

    @contextmanager
    def _core(self) -> Iterator[None]:
        """One of the cores. Raises: Stopped."""
        with self._cores:
            self._raise_if_stopped()
            yield

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _register(self, server: CellServer) -> None:
        with self._lock:
            self._servers.add(server)
        if self._stop.is_set():
            server.close()
            raise Stopped

    def _unregister(self, server: CellServer) -> None:
        with self._lock:
            self._servers.discard(server)


class _Live:
    """A cell while its probes run: its server, started again whenever it has died."""

    def __init__(
        self,
        runner: Runner,
        record: CellRecord,
        environment: Environment,
        scratch: Path,
        todo: Sequence[Probe],
    ) -> None:
        self._runner = runner
        self._record = record
        self._environment = environment
        self._scratch = scratch
        self._fork = any(probe.isolation == "fork" for probe in todo)
        self._starts = 0
        self._lock = threading.Lock()
        self._server: CellServer | None = None

    def __enter__(self) -> _Live:
        self._current()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            self._runner._unregister(self._server)

    def _current(self) -> CellServer:
        with self._lock:
            if self._server is not None and self._server.is_dead:
                self._server.close()
                self._runner._unregister(self._server)
                self._server = None
            if self._server is None:
                self._runner._raise_if_stopped()
                self._starts += 1
                means = self._runner._means
                server = CellServer(
                    self._environment.python,
                    cell_environment(means.env, self._environment.python, self._record.device),
                    self._scratch / f"server-{self._starts}",
                    fork=self._fork,
                )
                self._server = server
                self._runner._register(server)
            return self._server

    def probe(self, probe: Probe) -> dict[str, Any]:
        return self._current().probe(
            {
                "case": probe.case.id,
                "file": str(probe.case.file),
                "kind": probe.case.kind,
                "path": probe.path,
                "device": probe.cell.device.value,
                "deadline_s": probe.deadline_s,
                "memory_bytes": self._runner._means.memory_bytes,
                "isolation": probe.isolation,
            }
        )

    def observation(self, probe: Probe, seen: Mapping[str, Any]) -> Observation:
        now = self._runner._means.utc()
        return from_worker(probe, seen, now, environment=self._record.environment)


def _needs_second_look(found: Observation) -> bool:
    """Verdicts that are too grave, or too odd, to be believed of a forked child alone."""
    if found.verdict in (Verdict.WRONG, Verdict.CRASH, Verdict.TIMEOUT, Verdict.INVALID):
        return True
    return diagnose(found) is Cause.UNKNOWN


def _bare_record(cell: Cell, means: Means) -> CellRecord:
    return CellRecord(
        id=cell.id,
        python=cell.python,
        torch=cell.torch,
        device=cell.device.value,
        platform=cell.platform,
        era=cell.era.value,
        status="not-run",
        machine=means.machine,
        at=means.utc(),
        order=cell.order,
    )


def _cell_record(cell: Cell, environment: Environment, means: Means) -> CellRecord:
    return replace(
        _bare_record(cell, means),
        status="measured",
        python_version=environment.python_version,
        torch_version=environment.torch_version,
        environment=environment.id,
        index=environment.index,
        lock=environment.lock_sha256,
        packages=environment.packages,
    )
