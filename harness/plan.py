"""What a run is going to do: cells × cases × paths, resolved and in order, with nothing started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from harness.corpus import Case
from harness.matrix import Cell, Device, Impossible
from harness.results import NotRunReason
from harness.worker.paths import needs_inductor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.matrix import Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One case on one path in one cell. deadline_s: seconds until it is ended."""

    cell: Cell
    case: Case
    path: str
    deadline_s: float
    isolation: Literal["fork", "process"]

    @property
    def key(self) -> tuple[str, str, str]:
        """(cell id, case id, path): what a result is filed under."""
        return self.cell.id, self.case.id, self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """All probes of one cell, the cheap ones first. impossible: why nothing of it can run, if so."""

    cell: Cell
    impossible: Impossible | None
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole run. cells: in the order of matrix.yaml. cases: those with a probe, by id."""

    cells: tuple[CellPlan, ...]
    cases: tuple[Case, ...]

    @property
    def probe_count(self) -> int:
        return sum(len(cell.probes) for cell in self.cells)


def make_plan(
    cells: Sequence[Cell],
    cases: Sequence[Case],
    paths: Sequence[str],
    matrix: Matrix,
    *,
    isolation: Literal["fork", "process", "auto"] = "auto",
    can_fork: bool = True,
) -> Plan:
    """Every probe of the selection.

    paths: those selected; a case is asked only on its own. isolation: `auto` forks where the case and
    the device allow it and the system can (`can_fork`: Linux).
    """

    def probe(cell: Cell, case: Case, path: str) -> Probe:
        forks = can_fork and cell.device is Device.CPU and case.isolation == "fork"
        return Probe(
            cell=cell,
            case=case,
            path=path,
            deadline_s=case.deadline_s or matrix.limits.deadline_s(path),
            isolation="fork" if forks and isolation != "process" else "process",
        )

    planned = []
    for cell in cells:
        probes = [probe(cell, case, path) for case in cases for path in case.paths if path in paths]
        # The first verdicts come soon, and fresh processes, the slowest, do not wait for the end.
        probes.sort(
            key=lambda p: (needs_inductor(p.path), p.isolation == "fork", p.case.id, p.path)
        )
        planned.append(
            CellPlan(cell=cell, impossible=matrix.why_impossible(cell), probes=tuple(probes))
        )
    used = {probe.case.id for cell in planned for probe in cell.probes}
    return Plan(cells=tuple(planned), cases=tuple(case for case in cases if case.id in used))


def why_not(
    probe: Probe, python_version: str, torch_version: str
) -> tuple[NotRunReason | None, str]:
    """Why a probe is not to be started in its cell: (reason, sentence); ("None", "") when it is.

    The reason is None where the case is `unavailable`: it needs what this Python or torch does not have.
    """
    if probe.cell.device.value not in probe.case.devices:
        if probe.cell.device is Device.CPU:
            return (
                NotRunReason.NO_DEVICE,
                "no CUDA device: the case is for one, and this is a CPU cell",
            )
        return NotRunReason.WRONG_DEVICE, f"the case is for {', '.join(probe.case.devices)}"
    return None, probe.case.applies(python_version, torch_version)
