"""Observations: made from what the worker saw, or from what kept it from looking. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.results import GraphBreak, NotRunReason, Observation, Raised, Verdict
from harness.worker import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.plan import Probe


def from_worker(probe: Probe, seen: Mapping[str, Any], at: str, *, environment: str) -> Observation:
    """An observation from the fields that the worker sent. at: UTC, ISO 8601."""
    reason = seen.get("not_run")
    return Observation(
        cell=probe.cell.id,
        case=probe.case.id,
        path=probe.path,
        verdict=Verdict(seen["verdict"]),
        message=seen.get("message", ""),
        not_run=NotRunReason(reason) if reason else None,
        environment=environment,
        case_digest=probe.case.digest,
        protocol=PROTOCOL,
        at=at,
        seconds=seen.get("seconds", 0.0),
        peak_bytes=seen.get("peak_bytes", 0),
        isolation=seen.get("isolation", ""),
        graphs=seen.get("graphs", 0),
        ops=seen.get("ops", 0),
        recompiles=seen.get("recompiles", 0),
        breaks=tuple(GraphBreak(**found) for found in seen.get("breaks", ())),
        raised=tuple(
            Raised(**{**found, "bases": tuple(found["bases"])}) for found in seen.get("raised", ())
        ),
        traceback=seen.get("traceback", ""),
        output=seen.get("output", ""),
        signal=seen.get("signal", ""),
        exit_status=seen.get("exit_status"),
        difference=seen.get("difference", ""),
    )


def not_run(
    probe: Probe, reason: NotRunReason, message: str, at: str, *, environment: str = ""
) -> Observation:
    """Nobody could look."""
    return Observation(
        cell=probe.cell.id,
        case=probe.case.id,
        path=probe.path,
        verdict=Verdict.NOT_RUN,
        message=message,
        not_run=reason,
        environment=environment,
        case_digest=probe.case.digest,
        protocol=PROTOCOL,
        at=at,
    )


def unavailable(probe: Probe, message: str, at: str, *, environment: str) -> Observation:
    """The case needs what this cell does not have."""
    return Observation(
        cell=probe.cell.id,
        case=probe.case.id,
        path=probe.path,
        verdict=Verdict.UNAVAILABLE,
        message=message,
        environment=environment,
        case_digest=probe.case.digest,
        protocol=PROTOCOL,
        at=at,
    )
