"""Cells × cases → observations: environments are built while probes run, on all cores, with deadlines.

A thread a cell: it waits for its environment, starts the cell's server and hands it probes. Three bounds
hold over all cells: environments built at once, cells alive at once (memory), probes in flight (cores).
Whatever is learnt goes to the journal at once, so that an end at any moment loses only what is in flight.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import journal
from harness.cell_server import ServerDied, ServerFailed, cell_environment
from harness.diagnosis import diagnose
from harness.environments import Environment, EnvironmentFailed, EnvironmentStore
from harness.interpreters import Interpreter, InterpreterFetcher
from harness.live_cell import LiveCell
from harness.matrix import Device, Matrix
from harness.observations import from_worker, not_run, unavailable
from harness.plan import why_not
from harness.results import Cause, CellRecord, NotRunReason, Observation, Verdict
from harness.worker import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.baseline import Baseline
    from harness.matrix import Cell
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
    """Carries out one plan. known: what earlier runs observed. baseline: what need not be looked at
    twice. stop: once set, nothing more is started."""

    def __init__(
        self,
        plan: Plan,
        means: Means,
        recorder: Recorder,
        known: Mapping[journal.Probe, Observation],
        baseline: Baseline,
        stop: threading.Event,
    ) -> None:
        self._plan = plan
        self._means = means
        self._recorder = recorder
        self._known = known
        self._baseline = baseline
        self._stop = stop
        self._building = threading.Semaphore(_BUILDERS)
        self._living = threading.Semaphore(means.live_cells)
        self._cores = threading.Semaphore(means.cores)
        self._live: set[LiveCell] = set()
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
            living = tuple(self._live)
        for live in living:
            live.end()

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
        """Raises: Stopped; EnvironmentFailed when the cell's server does not come up."""
        means = self._means
        with ExitStack() as ending:
            scratch = Path(tempfile.mkdtemp(prefix="compile-matrix-"))
            ending.callback(shutil.rmtree, scratch, ignore_errors=True)
            live = LiveCell(
                environment.python,
                cell_environment(means.env, environment.python, record.device),
                scratch,
                fork=any(probe.isolation == "fork" for probe in todo),
                memory_bytes=means.memory_bytes,
            )
            with self._lock:
                self._live.add(live)
            ending.callback(self._live.discard, live)
            ending.callback(live.end)
            self._raise_if_stopped()
            pool = ending.enter_context(ThreadPoolExecutor(means.cores, "probe"))
            futures = [pool.submit(self._observe, live, probe, record) for probe in todo]
            try:
                for future in wait(futures, return_when="FIRST_EXCEPTION").done:
                    future.result()  # raises, whatever else is in flight
                suspects = [probe for future in futures if (probe := future.result()) is not None]
            except BaseException as error:
                for future in futures:
                    future.cancel()
                live.end()  # what is in flight need not be waited for
                if isinstance(error, ServerFailed):
                    self._raise_if_stopped()
                    reason = NotRunReason.WORKER_FAILED
                    raise EnvironmentFailed(reason, _did_not_come_up(error), error.log) from error
                raise
            for probe in suspects:  # each alone, so that a server that dies has one culprit
                self._observe_alone(live, probe, record)

    def _observe(self, live: LiveCell, probe: Probe, record: CellRecord) -> Probe | None:
        """Observes a probe; returns it instead when the server died under it and others.

        Raises: Stopped; ServerFailed when no server has ever come up.
        """
        try:
            with self._core():
                seen = live.probe(probe)
            found = self._believed(live, probe, self._observation(probe, seen, record), record)
        except ServerFailed as failure:
            self._raise_if_stopped()
            if not live.has_come_up:
                raise
            self._recorder.observation(self._server_is_gone(probe, failure, record))
            return None
        except ServerDied:
            self._raise_if_stopped()
            return probe
        self._recorder.observation(found)
        return None

    def _observe_alone(self, live: LiveCell, probe: Probe, record: CellRecord) -> None:
        """Observes a probe with nothing else in the server: if that dies, it died of this one."""
        try:
            with self._core():
                seen = live.probe(probe)
        except ServerFailed as failure:
            self._raise_if_stopped()
            self._recorder.observation(self._server_is_gone(probe, failure, record))
            return
        except ServerDied as death:
            self._raise_if_stopped()
            seen = {
                "verdict": "crash",
                "message": f"the case ended the server it was forked from ({death})",
                "signal": death.signal,
                "output": death.log,
                "isolation": probe.isolation,
            }
        first = self._observation(probe, seen, record)
        try:
            found = self._believed(live, probe, first, record)
        except ServerDied:
            self._raise_if_stopped()
            found = first
        self._recorder.observation(found)

    def _believed(
        self, live: LiveCell, probe: Probe, found: Observation, record: CellRecord
    ) -> Observation:
        """What was seen, or what a second look shows: in a fresh process, where a fork may be to blame.

        Raises: Stopped; ServerDied.
        """
        if found.isolation != "fork" or not self._needs_second_look(found):
            return found
        with self._core():
            return self._observation(probe, live.probe(probe, isolation="process"), record)

    def _server_is_gone(
        self, probe: Probe, failure: ServerFailed, record: CellRecord
    ) -> Observation:
        reason, text = NotRunReason.WORKER_FAILED, _did_not_come_up(failure)
        return not_run(probe, reason, text, self._means.utc(), environment=record.environment)

    def _observation(
        self, probe: Probe, seen: Mapping[str, Any], record: CellRecord
    ) -> Observation:
        return from_worker(probe, seen, self._means.utc(), environment=record.environment)

    def _needs_second_look(self, found: Observation) -> bool:
        """Whether a verdict is too grave, or too odd, to be believed of a forked child alone.

        What the baseline expects was confirmed in a fresh process when it was first found.
        """
        cause = diagnose(found)
        grave = (Verdict.WRONG, Verdict.CRASH, Verdict.TIMEOUT, Verdict.INVALID)
        if found.verdict not in grave and cause is not Cause.UNKNOWN:
            return False
        expected = self._baseline.expectation(found.case, found.path, found.cell)
        return (expected.verdict, expected.cause) != (found.verdict, cause)

    @contextmanager
    def _core(self) -> Iterator[None]:
        """One of the cores. Raises: Stopped."""
        with self._cores:
            self._raise_if_stopped()
            yield

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Stopped


def _did_not_come_up(failure: ServerFailed) -> str:
    return f"the server of the cell did not come up: {failure}"


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
