"""support.json: the published results, whose shape is a promise to whoever reads them.

The classes below are that shape. The JSON Schema is generated from them, with their docstrings as its
descriptions, so that neither can say what the other does not.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.reports.plain import head
from harness.results import (
    CaseRecord,
    Cause,
    CellRecord,
    Expectation,
    Findings,
    GraphBreak,
    MachineRecord,
    NotRunReason,
    Result,
    Standing,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA: Final = 1
SCHEMA_ID = "urn:compile-matrix:schema:support:1"

_TEXT_LIMIT = 20_000
_REASON_LIMIT = 1_000
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_DESCRIBED = {"use_attribute_docstrings": True}
"""Has pydantic take the docstring below each field as its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEntry:
    """A machine that measured."""

    __pydantic_config__ = _DESCRIBED

    harness: str
    """Version of the harness that ran on it."""
    protocol: int
    """Version of the worker's protocol: results of different protocols are not compared."""
    at: str
    """When the run started there: UTC, ISO 8601."""
    facts: dict[str, str]
    """System, processor, cores, memory, compiler and the like, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEntry:
    """Where the results were measured."""

    __pydantic_config__ = _DESCRIBED

    machines: dict[str, MachineEntry]
    """Machines by id; a cell names the one that measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEntry:
    """One environment: Python × torch × device × platform × era."""

    __pydantic_config__ = _DESCRIBED

    python: str
    """Minor version that was asked for: `3.12`."""
    torch: str
    """Exact version that was asked for: `2.4.1`."""
    device: str
    """`cpu` or `cuda`."""
    platform: str
    """`linux-x86_64` and the like."""
    era: str
    """As of when the other dependencies were resolved: `release`, `today`, or `adopted`."""
    status: Literal["measured", "not-run"]
    """Whether an environment stood. `not-run` says nothing of the compiler, neither good nor bad."""
    reason: NotRunReason | None
    """Why nobody could look; null for a measured cell."""
    detail: str
    """The reason in a sentence, where there is more to say."""
    python_version: str
    """As the interpreter names itself, `3.12.1`; empty when there was none."""
    torch_version: str
    """As torch names itself, `2.4.1+cpu`; empty when there was none."""
    index: str
    """Which package index torch came from."""
    lock: str
    """sha256 of the lock file of the environment."""
    packages: dict[str, str]
    """What was installed: name → version."""
    machine: str
    """Id of the machine that measured it: a key of `environment.machines`."""
    at: str
    """When it was last written about: UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseEntry:
    """One small program that is compiled."""

    __pydantic_config__ = _DESCRIBED

    title: str
    """What is asked, in one sentence."""
    category: str
    """The group it belongs to."""
    kind: Literal["run", "check", "script"]
    """How it is looked at: compared with eager, asserting for itself, or run as a program."""
    paths: tuple[str, ...]
    """The compile paths it is meant for."""
    source: tuple[str, ...]
    """Where its question comes from: URLs."""
    digest: str
    """sha256 of its file: results with different digests are of different programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEntry:
    """A place at which one graph ended and the interpreter took over."""

    __pydantic_config__ = _DESCRIBED

    reason: str
    """torch's own words, first line."""
    code: str
    """torch's code of the reason, `GB0082`, where the release has codes; else empty."""
    file: str
    """As torch names it; a case's own file by the case's id."""
    line: int
    """From 1; 0 where torch does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionEntry:
    """The exception that reached the caller."""

    __pydantic_config__ = _DESCRIBED

    type: str
    """Its class with its module: `torch._dynamo.exc.Unsupported`."""
    message: str
    """Its text, cut at 20,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEntry:
    """What the baseline says of a probe."""

    __pydantic_config__ = _DESCRIBED

    verdict: Verdict
    """The verdict that was accepted last."""
    cause: Cause | None
    """Its cause, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultEntry:
    """What one probe showed: one case on one path in one cell."""

    __pydantic_config__ = _DESCRIBED

    cell: str
    """A key of `cells`."""
    case: str
    """A key of `cases`."""
    path: str
    """How it was compiled: `dynamo`, `aot`, `inductor`, a variant of these, or `script`."""
    verdict: Verdict
    """What the probe showed."""
    works: bool | None
    """true: compiled, and right. false: not so. null: this says nothing of the compiler."""
    cause: Cause | None
    """Why it does not work, from a closed list."""
    message: str
    """What happened, in a line or a few."""
    breaks: tuple[BreakEntry, ...]
    """Graph breaks, in the order in which they were met."""
    graphs: int
    """Graphs that a backend compiled."""
    seconds: float
    """Wall time of the probe."""
    expected: ExpectedEntry | None
    """What the baseline says; null where it says nothing."""
    ops: int
    """Operations in the graphs."""
    recompiles: int
    """Graphs compiled again for code that had one already."""
    standing: Standing
    """The result against what is expected of it."""
    exception: ExceptionEntry | None
    """The outermost exception; null where none was raised."""
    isolation: Literal["fork", "process", ""]
    """Whether it ran in a child of a warm server or in a fresh process; empty where it did not run."""
    exit_status: int | None
    """What a plain script left with, also where its verdict says more; null for other cases."""
    peak_bytes: int
    """Largest resident memory of its process."""
    at: str
    """When it was measured: UTC, ISO 8601."""
    difference: str
    """What differs from eager, for `wrong`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Which programs torch.compile compiles on which Python and which PyTorch, as it was measured.

    Within version 1, keys and values of enumerations are only ever added: none is renamed, removed or given
    another meaning. Readers ignore keys that they do not know. A missing result is a gap: it was not
    measured, which is neither yes nor no.
    """

    __pydantic_config__ = _DESCRIBED

    schema: Literal[1]
    """Version of this shape."""
    generated: str
    """Time of the newest measurement, UTC, ISO 8601; empty when nothing was measured."""
    harness: str
    """Version of the harness that measured last."""
    environment: EnvironmentEntry
    """Where it was measured."""
    cells: dict[str, CellEntry]
    """Environments by id, in the order of the matrix."""
    cases: dict[str, CaseEntry]
    """Programs by id."""
    results: tuple[ResultEntry, ...]
    """One entry for each probe, by cell, case and path."""


def support_schema() -> dict[str, Any]:
    """The JSON Schema of support.json, as it is published in docs/schema/support.schema.json."""
    # Only whoever writes or checks the schema waits for this import.
    from pydantic import TypeAdapter

    generated = TypeAdapter(Support).json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **generated,
        "title": "torch.compile support table",
    }


def support_document(findings: Findings) -> Support:
    """The published form of findings."""
    newest = max(findings.machines, key=lambda machine: machine.at, default=None)
    return Support(
        schema=SCHEMA,
        generated=findings.generated,
        harness=newest.harness if newest is not None else "",
        environment=EnvironmentEntry(
            machines={machine.id: _machine_entry(machine) for machine in findings.machines}
        ),
        cells={cell.id: _cell_entry(cell) for cell in findings.cells},
        cases={case.id: _case_entry(case) for case in findings.cases},
        results=tuple(_result_entry(result) for result in findings.results),
    )


def render_support(findings: Findings) -> str:
    """support.json: pure ASCII, one line for each machine, cell, case and result, so that it diffs well."""
    document = support_document(findings)
    machines = _object(
        (name, asdict(entry)) for name, entry in document.environment.machines.items()
    )
    results = ",\n".join(_json(asdict(entry)) for entry in document.results)
    members = {
        "schema": _json(document.schema),
        "generated": _json(document.generated),
        "harness": _json(document.harness),
        "environment": f'{{"machines": {machines}}}',
        "cells": _object((name, asdict(entry)) for name, entry in document.cells.items()),
        "cases": _object((name, asdict(entry)) for name, entry in document.cases.items()),
        "results": f"[\n{results}\n]" if results else "[]",
    }
    body = ",\n".join(f"{_json(key)}: {value}" for key, value in members.items())
    return f"{{\n{body}\n}}\n"


def _object(entries: Iterable[tuple[str, dict[str, Any]]]) -> str:
    lines = ",\n".join(f"{_json(name)}: {_json(entry)}" for name, entry in entries)
    return f"{{\n{lines}\n}}" if lines else "{}"


def _json(value: object) -> str:
    # Half a surrogate pair is JSON to Python alone: other readers refuse the whole document for it.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if _SURROGATE.search(text):
        value = json.loads(_SURROGATE.sub("\ufffd", text))
    return json.dumps(value, allow_nan=False)


def _machine_entry(machine: MachineRecord) -> MachineEntry:
    return MachineEntry(
        harness=machine.harness,
        protocol=machine.protocol,
        at=machine.at,
        facts=dict(sorted(machine.facts.items())),
    )


def _cell_entry(cell: CellRecord) -> CellEntry:
    return CellEntry(
        python=cell.python,
        torch=cell.torch,
        device=cell.device,
        platform=cell.platform,
        era=cell.era,
        status=cell.status,
        reason=cell.reason,
        detail=cell.detail,
        python_version=cell.python_version,
        torch_version=cell.torch_version,
        index=cell.index,
        lock=cell.lock,
        packages=dict(sorted(cell.packages.items())),
        machine=cell.machine,
        at=cell.at,
    )


def _case_entry(case: CaseRecord) -> CaseEntry:
    return CaseEntry(
        title=case.title,
        category=case.category,
        kind=case.kind,
        paths=case.paths,
        source=case.source,
        digest=case.digest,
    )


def _result_entry(result: Result) -> ResultEntry:
    seen = result.observation
    outermost = seen.raised[0] if seen.raised else None
    return ResultEntry(
        cell=seen.cell,
        case=seen.case,
        path=seen.path,
        verdict=seen.verdict,
        works=seen.verdict.works,
        cause=result.cause,
        message=head(seen.message, _TEXT_LIMIT),
        breaks=tuple(_break_entry(graph_break) for graph_break in seen.breaks),
        graphs=seen.graphs,
        seconds=round(seen.seconds, 3) if math.isfinite(seen.seconds) else 0.0,
        expected=_expected_entry(result.expectation),
        ops=seen.ops,
        recompiles=seen.recompiles,
        standing=result.standing,
        exception=ExceptionEntry(type=outermost.type, message=head(outermost.message, _TEXT_LIMIT))
        if outermost is not None
        else None,
        isolation=seen.isolation,
        exit_status=seen.exit_status,
        peak_bytes=seen.peak_bytes,
        at=seen.at,
        difference=head(seen.difference, _TEXT_LIMIT),
    )


def _break_entry(graph_break: GraphBreak) -> BreakEntry:
    return BreakEntry(
        reason=head(graph_break.reason, _REASON_LIMIT),
        code=graph_break.code,
        file=graph_break.file,
        line=graph_break.line,
    )


def _expected_entry(expected: Expectation) -> ExpectedEntry | None:
    if expected.verdict is None:
        return None
    return ExpectedEntry(verdict=expected.verdict, cause=expected.cause)
