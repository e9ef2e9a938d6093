"""`run`: carries out a plan, and reports on it."""

from __future__ import annotations

import os
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version
from platformdirs import user_cache_path

from harness import machine
from harness.baseline import load_baseline, write_baseline
from harness.commands.project import select
from harness.commands.report import JOURNAL, baseline_folder, narrowed, publish, read
from harness.environments import EnvironmentStore
from harness.errors import ExitStatus, HarnessError, HarnessErrors
from harness.findings import judge
from harness.interpreters import InterpreterFetcher
from harness.journal import Journal, fresh, reusable
from harness.matrix import Cell, Device, Era
from harness.plan import Plan, make_plan
from harness.progress import make_progress
from harness.recorder import Recorder
from harness.results import CaseRecord
from harness.runner import Means, Runner

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from harness.commands.project import Selection
    from harness.corpus import Case
    from harness.environments import Environment


def run(options: argparse.Namespace) -> ExitStatus:
    """Measures what is selected. Raises: HarnessError; KeyboardInterrupt, once all children are ended."""
    env = dict(os.environ)
    selection = select(options, env)
    for mistake in selection.mistakes:
        print(mistake.render(), file=sys.stderr)
    baseline = load_baseline(baseline_folder(options))
    journal_path = options.journal or options.reports / JOURNAL
    stop = threading.Event()
    say: list[Callable[[str], None]] = []

    def tell(line: str) -> None:
        say[0](line)  # the display comes into being only when the plan is known

    store = open_store(options, env, cancel=stop, on_event=tell)
    adopted = {_adopted_cell(env_).id: env_ for env_ in map(store.adopt, options.interpreter)}
    cells = (*selection.cells, *(_adopted_cell(one) for one in adopted.values()))
    plan = make_plan(
        cells,
        selection.cases,
        selection.paths,
        selection.matrix,
        isolation=options.isolation,
        can_fork=machine.can_fork(),
    )
    if not plan.probe_count:
        hint = "see what a selection means with: compile-matrix plan"
        msg = "no case of this selection has a path of this selection"
        raise HarnessError(msg, hint=hint)
    if options.fresh:
        fresh(journal_path)
    with Journal.open(journal_path) as journal:
        records = read([journal_path]) if journal_path.exists() else ()
        progress = make_progress(
            sys.stderr,
            probes=plan.probe_count,
            cells=len(plan.cells),
            colour=not os.environ.get("NO_COLOR"),
        )
        say.append(progress.say)
        try:
            recorder = Recorder(journal, records, progress)
            means = _means(options, env, selection, store, adopted, stop)
            recorder.machine(machine.describe(env, _utc()))
            for case in plan.cases:
                recorder.case(_case_record(case))
            Runner(plan, means, recorder, reusable(records), baseline, stop).run()
        finally:
            store.close()
            progress.close()
    return _conclude(options, journal_path, plan, selection)


def open_store(
    options: argparse.Namespace,
    env: Mapping[str, str],
    *,
    cancel: threading.Event | None = None,
    on_event: Callable[[str], None] | None = None,
) -> EnvironmentStore:
    """The store that the options and COMPILE_MATRIX_CACHE name."""
    named = options.cache or env.get("COMPILE_MATRIX_CACHE")
    return EnvironmentStore(
        Path(named) if named else user_cache_path("compile-matrix"),
        env=env,
        now=datetime.now(timezone.utc),
        offline=options.offline,
        budget_bytes=options.disk_budget,
        keep=options.keep_envs,
        cancel=cancel,
        on_event=on_event,
    )


def _means(
    options: argparse.Namespace,
    env: Mapping[str, str],
    selection: Selection,
    store: EnvironmentStore,
    adopted: Mapping[str, Environment],
    stop: threading.Event,
) -> Means:
    core_count = options.jobs or machine.cores()
    return Means(
        matrix=selection.matrix,
        store=store,
        interpreters=selection.interpreters,
        fetcher=InterpreterFetcher(env=env, offline=options.offline, cancel=stop),
        env=env,
        cores=core_count,
        live_cells=machine.live_cells(core_count),
        memory_bytes=selection.matrix.limits.memory_bytes,
        has_cuda=machine.has_cuda_device(),
        machine=machine.describe(env, "").id,
        adopted=adopted,
        record_not_run=options.record_not_run or "",
        utc=_utc,
    )


def _conclude(
    options: argparse.Namespace, journal_path: Path, plan: Plan, selection: Selection
) -> ExitStatus:
    records = read([journal_path])
    folder = baseline_folder(options)
    probes = {probe.key for cell in plan.cells for probe in cell.probes}
    if options.accept:
        found = narrowed(judge(records, load_baseline(folder)), probes)
        changed = write_baseline(folder, found)
        print(f"accepted: {len(changed)} files of {folder} changed", file=sys.stderr)
    status = publish(judge(records, load_baseline(folder)), options.reports, probes)
    if selection.mistakes:
        raise HarnessErrors(selection.mistakes)
    return status


def _adopted_cell(environment: Environment) -> Cell:
    version = Version(environment.torch_version)
    python = ".".join(environment.python_version.split(".")[:2])
    return Cell(
        python=python,
        torch=version.public,
        device=Device.CPU,
        era=Era.ADOPTED,
        platform=machine.current_platform(),
        id=f"{python}-{version.public}-adopted",
        order=10**9,
    )


def _case_record(case: Case) -> CaseRecord:
    return CaseRecord(
        id=case.id,
        title=case.title,
        category=case.category,
        kind=case.kind,
        paths=case.paths,
        source=case.source,
        digest=case.digest,
        text=case.text,
    )


def _utc() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
