"""`plan`: what a selection means here, with nothing started; and the job matrix for GitHub Actions."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from harness import machine
from harness.commands.project import select
from harness.errors import ExitStatus, HarnessError
from harness.matrix import Device
from harness.plan import make_plan

if TYPE_CHECKING:
    import argparse

    from harness.commands.project import Selection
    from harness.plan import CellPlan, Plan

_JOB_LIMIT = 256
"""Jobs that one GitHub Actions matrix may have (GitHub's documentation, "Usage limits")."""


def plan(options: argparse.Namespace) -> ExitStatus:
    """Prints the plan: as a table, as JSON, or as two lines for GITHUB_OUTPUT."""
    selection = select(options, dict(os.environ))
    for mistake in selection.mistakes:
        print(mistake.render(), file=sys.stderr)
    planned = make_plan(
        selection.cells,
        selection.cases,
        selection.paths,
        selection.matrix,
        isolation=options.isolation,
        can_fork=machine.can_fork(),
    )
    if options.github:
        _print_github(planned)
    elif options.json:
        print(json.dumps(_as_json(planned, selection), indent=2))
    else:
        _print_table(planned, selection)
    return ExitStatus.OK


def _why_not(cell: CellPlan, selection: Selection) -> str:
    """Why nothing of the cell would run here. A Python that uv can be asked for is no reason."""
    if cell.impossible is not None:
        return f"{cell.impossible.reason.value}: {cell.impossible.detail}"
    if cell.cell.device is Device.CUDA and not machine.has_cuda_device():
        return "no CUDA device on this machine"
    if _is_absent(cell, selection):
        listed = next(p for p in selection.matrix.pythons if p.version == cell.cell.python)
        return f"no interpreter for Python {listed.version} here" if listed.only_if_found else ""
    return ""


def _is_absent(cell: CellPlan, selection: Selection) -> bool:
    return cell.cell.python not in selection.interpreters


def _print_table(planned: Plan, selection: Selection) -> None:
    width = max(len(cell.cell.id) for cell in planned.cells)
    for cell in planned.cells:
        why = _why_not(cell, selection)
        state = f"not-run: {why}" if why else f"{len(cell.probes)} probes"
        if not why and _is_absent(cell, selection):
            state = f"{state}, once uv has downloaded Python {cell.cell.python}"
        print(f"{cell.cell.id:<{width}}  torch {cell.cell.torch:<7} {state}")
    runnable = [cell for cell in planned.cells if not _why_not(cell, selection)]
    probes = sum(len(cell.probes) for cell in runnable)
    print(
        f"{len(planned.cases)} cases; {probes} probes in {len(runnable)} of {len(planned.cells)} cells"
    )


def _as_json(planned: Plan, selection: Selection) -> dict[str, Any]:
    return {
        "schema": 1,
        "cells": [
            {
                "id": cell.cell.id,
                "python": cell.cell.python,
                "torch": cell.cell.torch,
                "device": cell.cell.device.value,
                "era": cell.cell.era.value,
                "platform": cell.cell.platform,
                "not_run": _why_not(cell, selection) or None,
                "probes": [
                    {"case": p.case.id, "path": p.path, "isolation": p.isolation}
                    for p in cell.probes
                ],
            }
            for cell in planned.cells
        ],
    }


def _print_github(planned: Plan) -> None:
    """`matrix=` (a job a cell) and `excluded=` (cells that no wheel serves), for GITHUB_OUTPUT.

    CUDA cells have a lane of their own, because their runner is a setting of the repository.
    """
    cells = [cell for cell in planned.cells if cell.cell.device is Device.CPU]
    jobs = [
        {"cell": cell.cell.id, "python": cell.cell.python, "runner": "ubuntu-latest"}
        for cell in cells
        if cell.impossible is None
    ]
    if len(jobs) > _JOB_LIMIT:
        message = f"{len(jobs)} cells are more than the {_JOB_LIMIT} jobs of one job matrix"
        raise HarnessError(message, hint="plan a smaller selection: --profile or --cells")
    excluded = ",".join(cell.cell.id for cell in cells if cell.impossible is not None)
    print(f"matrix={json.dumps({'include': jobs}, separators=(',', ':'))}")
    print(f"excluded={excluded}")
