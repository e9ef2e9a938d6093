"""Records → findings: which of them count, why each probe ended as it did, and what differs.

Pure, and blind to the order of journals: merging the journals of several machines is judging their
records together. Where one thing was recorded twice, the newer record counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from harness.baseline import Baseline, stand
from harness.results import (
    CaseRecord,
    Cause,
    CellRecord,
    Findings,
    MachineRecord,
    Observation,
    Result,
    Verdict,
)

if TYPE_CHECKING:
    from harness.results import Record

Diagnose: TypeAlias = Callable[[Observation], "Cause | None"]
Key = TypeVar("Key")
Dated = TypeVar("Dated", CellRecord, MachineRecord, Observation)


def judge(
    records: Iterable[Record], baseline: Baseline, *, diagnose: Diagnose | None = None
) -> Findings:
    """Judge all that was recorded.

    No result is inherited. An observation counts only if it was made of the case as it is known last, in
    the environment that its cell has now, and by the newest worker that any record names. One that was
    made in no environment (not run, or known beforehand to be unavailable) hangs on its case alone. What
    names a cell or a case of which there is no record is left out.

    A cell in which nothing could run gives every case a `not-run` on each of its paths, save where an
    observation that counts says more. diagnose: `harness.diagnosis.diagnose`, unless another is given.
    """
    if diagnose is None:
        from harness.diagnosis import diagnose as by_its_rules

        diagnose = by_its_rules
    every = tuple(records)
    seen = [record for record in every if isinstance(record, Observation)]
    known_cells = _newest((r for r in every if isinstance(r, CellRecord)), lambda cell: cell.id)
    known_machines = _newest(
        (r for r in every if isinstance(r, MachineRecord)), lambda machine: machine.id
    )
    cells = sorted(known_cells.values(), key=lambda cell: (cell.order, cell.id))
    cases = _cases(every, seen)
    machines = sorted(known_machines.values(), key=lambda machine: (machine.at, machine.id))
    protocols = [
        record.protocol for record in every if isinstance(record, Observation | MachineRecord)
    ]
    protocol = max(protocols, default=0)
    current = _newest(
        (o for o in seen if _is_current(o, known_cells, cases, protocol)),
        lambda observation: (observation.cell, observation.case, observation.path),
    )
    for observation in _not_run(cells, cases.values()):
        probe = (observation.cell, observation.case, observation.path)
        known = current.setdefault(probe, observation)
        if known.verdict is Verdict.NOT_RUN and known.at < observation.at:
            current[probe] = observation
    place = {cell.id: number for number, cell in enumerate(cells)}
    in_order = sorted(current.values(), key=lambda o: (place[o.cell], o.case, o.path))
    results = [_result(observation, baseline, diagnose) for observation in in_order]
    return Findings(
        cells=tuple(cells),
        cases=tuple(cases[case_id] for case_id in sorted(cases)),
        results=tuple(results),
        machines=tuple(machines),
        generated=max((observation.at for observation in in_order), default=""),
    )


def _newest(records: Iterable[Dated], key: Callable[[Dated], Key]) -> dict[Key, Dated]:
    """The newest record of each key; of two from the same moment, the later line."""
    newest: dict[Key, Dated] = {}
    for record in records:
        known = newest.get(key(record))
        if known is None or record.at >= known.at:
            newest[key(record)] = record
    return newest


def _cases(every: Iterable[Record], seen: Iterable[Observation]) -> dict[str, CaseRecord]:
    """The case of each id as it is known last.

    A case record has no date. Where journals hold several texts of a case, the one that was measured
    last counts, whichever journal is read first; if the last line's text was never measured, that one.
    """
    measured: dict[tuple[str, str], str] = {}
    for observation in seen:
        text = (observation.case, observation.case_digest)
        measured[text] = max(measured.get(text, ""), observation.at)
    texts: defaultdict[str, list[CaseRecord]] = defaultdict(list)
    for record in every:
        if isinstance(record, CaseRecord):
            texts[record.id].append(record)
    cases: dict[str, CaseRecord] = {}
    for case_id, versions in texts.items():
        last = versions[-1]
        for version in reversed(versions):
            at, last_at = (measured.get((case_id, r.digest)) for r in (version, last))
            if at is not None and last_at is not None and at > last_at:
                last = version
        cases[case_id] = last
    return cases


def _is_current(
    observation: Observation,
    cells: dict[str, CellRecord],
    cases: dict[str, CaseRecord],
    protocol: int,
) -> bool:
    cell, case = cells.get(observation.cell), cases.get(observation.case)
    if cell is None or case is None or observation.case_digest != case.digest:
        return False
    if not observation.environment and not observation.verdict.is_probed:
        return True
    return observation.environment == cell.environment and observation.protocol >= protocol


def _not_run(cells: Iterable[CellRecord], cases: Iterable[CaseRecord]) -> Iterator[Observation]:
    """What is known of each probe in cells where nothing could run."""
    known = tuple(cases)
    for cell in cells:
        if cell.status != "not-run":
            continue
        for case in known:
            for path in case.paths:
                yield Observation(
                    cell=cell.id,
                    case=case.id,
                    path=path,
                    verdict=Verdict.NOT_RUN,
                    not_run=cell.reason,
                    message=cell.detail,
                    environment=cell.environment,
                    case_digest=case.digest,
                    at=cell.at,
                )


def _result(observation: Observation, baseline: Baseline, diagnose: Diagnose) -> Result:
    cause = diagnose(observation)
    expectation = baseline.expectation(observation.case, observation.path, observation.cell)
    return Result(
        observation=observation,
        cause=cause,
        expectation=expectation,
        standing=stand(observation.verdict, cause, expectation),
    )
