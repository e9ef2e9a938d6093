"""What a run finds out: the records of the journal, and the results that are read from them.

An *observation* is what the worker saw, as it was written to the journal. A *result* is an observation
with its cause, and with what the baseline expects of it. The records are described once, here; JSON
Schemas, the journal and the published table all follow from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal


class Verdict(str, Enum):
    """What a probe showed (docs/DESIGN: the table of verdicts)."""

    FULL = "full"
    PARTIAL = "partial"
    UNCOMPILED = "uncompiled"
    WRONG = "wrong"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    UNAVAILABLE = "unavailable"
    NOT_RUN = "not-run"
    INVALID = "invalid"

    @property
    def works(self) -> bool | None:
        """True: compiled and right. False: it does not work. None: says nothing of the compiler."""
        if self in (Verdict.FULL, Verdict.PARTIAL):
            return True
        if self in (Verdict.UNAVAILABLE, Verdict.NOT_RUN, Verdict.INVALID):
            return None
        return False

    @property
    def is_probed(self) -> bool:
        """Whether something ran in a cell to reach this verdict."""
        return self not in (Verdict.UNAVAILABLE, Verdict.NOT_RUN)


class Cause(str, Enum):
    """Why a probe did not work: stable names, a closed list (docs/causes has the meaning of each)."""

    PYTHON_UNSUPPORTED = "python-unsupported"
    PLATFORM_UNSUPPORTED = "platform-unsupported"
    DEPENDENCY_MISSING = "dependency-missing"
    DEPENDENCY_MISMATCH = "dependency-mismatch"
    IMPORT_BROKEN = "import-broken"
    CXX_COMPILER_MISSING = "cxx-compiler-missing"
    CXX_HEADERS_MISSING = "cxx-headers-missing"
    CXX_CODEGEN_ERROR = "cxx-codegen-error"
    TRITON_MISSING = "triton-missing"
    GPU_UNSUPPORTED = "gpu-unsupported"
    FILESYSTEM = "filesystem"
    GRAPH_BREAK = "graph-break"
    DATA_DEPENDENT = "data-dependent"
    RECOMPILE_LIMIT = "recompile-limit"
    FEATURE_UNSUPPORTED = "feature-unsupported"
    DYNAMO_INTERNAL_ERROR = "dynamo-internal-error"
    BACKEND_FAILED = "backend-failed"
    WRONG_RESULT = "wrong-result"
    CUDAGRAPH_OVERWRITTEN = "cudagraph-overwritten"
    RECURSION_LIMIT = "recursion-limit"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    EAGER_FAILED = "eager-failed"
    NOT_CAPTURED = "not-captured"
    """No graph, and Dynamo named no break: it was disabled, skipped the frame, or a refusal was swallowed."""
    UNKNOWN = "unknown"

    @property
    def is_environment(self) -> bool:
        """Whether the cause lies in the machine or its packages rather than in the compiler."""
        return self in (
            Cause.DEPENDENCY_MISSING,
            Cause.DEPENDENCY_MISMATCH,
            Cause.IMPORT_BROKEN,
            Cause.CXX_COMPILER_MISSING,
            Cause.CXX_HEADERS_MISSING,
            Cause.TRITON_MISSING,
            Cause.GPU_UNSUPPORTED,
            Cause.FILESYSTEM,
            Cause.OUT_OF_MEMORY,
        )


class NotRunReason(str, Enum):
    """Why nobody could look."""

    NO_WHEEL = "no wheel"
    NO_INTERPRETER = "no interpreter"
    NO_DEVICE = "no CUDA device"
    NO_RUNNER = "no CUDA runner"
    INDEX_UNREACHABLE = "index did not answer"
    ENVIRONMENT_FAILED = "environment could not be built"
    DISK_FULL = "disk full"
    WORKER_FAILED = "worker failed"
    WRONG_DEVICE = "not for this device"
    UNSAFE_MODE = "needs what this platform lacks"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak:
    """One place at which Dynamo ended a graph and went back to the interpreter.

    reason: torch's own words, first line. code: `GB0082` where the release has codes, else empty.
    file: as torch names it, a case's own file by its id. line: 1-based, 0 where torch does not say.
    """

    reason: str
    code: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """One exception of a chain, innermost last.

    type: qualified by its module (`torch._dynamo.exc.Unsupported`). message: as raised, cut at 20,000
    characters. bases: the qualified names of its base classes. frame: `file:line in function`, the
    innermost place of its traceback.
    """

    type: str
    message: str
    bases: tuple[str, ...] = ()
    frame: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the worker saw in one probe: one line of the journal.

    cell, case, path: the probe. environment: id of the environment it ran in ("" when none was built).
    case_digest: sha256 of the case's file. protocol: version of the worker that looked.
    at: UTC, ISO 8601, when it was measured. seconds: wall time of the probe. peak_bytes: largest
    resident memory of its process. isolation: `fork` from the warm server or a fresh `process`.
    graphs: graphs that a backend compiled. ops: operations in them. recompiles: graphs compiled again
    for code that had one already. raised: outermost exception first. traceback: cut from the top.
    output: tail of what the case wrote to stdout and stderr, with faulthandler's traceback of a crash.
    signal: name of the signal that ended the process. difference: what differs from eager.
    """

    record: Literal["observation"] = "observation"
    cell: str
    case: str
    path: str
    verdict: Verdict
    message: str = ""
    not_run: NotRunReason | None = None
    environment: str = ""
    case_digest: str = ""
    protocol: int = 0
    at: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    isolation: Literal["fork", "process", ""] = ""
    graphs: int = 0
    ops: int = 0
    recompiles: int = 0
    breaks: tuple[GraphBreak, ...] = ()
    raised: tuple[Raised, ...] = ()
    traceback: str = ""
    output: str = ""
    signal: str = ""
    exit_status: int | None = None
    difference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """What is known of a cell: one line of the journal, the last one counts.

    python: minor version, `3.12`. torch: as asked, `2.4.1`. python_version, torch_version: as the
    interpreter and torch name themselves (`3.12.1`, `2.4.1+cpu`), empty when not built.
    status: `measured` once an environment stood, else `not-run` with its reason, detail and evidence.
    index: which index torch came from. packages: name → version, as resolved. lock: sha256 of the
    lock file. order: place in matrix.yaml, so that columns keep their order.
    """

    record: Literal["cell"] = "cell"
    id: str
    python: str
    torch: str
    device: str
    platform: str
    era: str
    status: Literal["measured", "not-run"]
    reason: NotRunReason | None = None
    detail: str = ""
    evidence: str = ""
    python_version: str = ""
    torch_version: str = ""
    environment: str = ""
    index: str = ""
    lock: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    at: str = ""
    order: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """What is known of a case: one line of the journal, the last one counts.

    id: its path below its corpus folder without `.py`. category: its folder. source: where its question
    comes from (URLs). text: the file itself, so that a report can show and hand out the reproduction.
    """

    record: Literal["case"] = "case"
    id: str
    title: str
    category: str
    kind: Literal["run", "check", "script"]
    paths: tuple[str, ...]
    source: tuple[str, ...] = ()
    digest: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """The machine that measured: one line of the journal for each run.

    id: short hash of the facts. facts: system, processor, cores, memory, compiler, index …, as text.
    """

    record: Literal["machine"] = "machine"
    id: str
    harness: str
    protocol: int
    facts: dict[str, str] = field(default_factory=dict)
    at: str = ""


Record = Observation | CellRecord | CaseRecord | MachineRecord


class Standing(str, Enum):
    """A result against what is expected of it."""

    EXPECTED = "expected"
    """As the baseline says; or, with no baseline, it works or says nothing of the compiler."""
    WORSE = "worse"
    """The baseline knew better (full → partial, works → does not)."""
    BETTER = "better"
    """Better than the baseline knows: accept it, so that it cannot be lost unnoticed."""
    CHANGED = "changed"
    """Neither better nor worse, but not the same (another cause, another way to fail)."""
    NEW = "new"
    """Does not work, and no baseline says that this is known."""

    @property
    def is_difference(self) -> bool:
        return self is not Standing.EXPECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What the baseline says of one probe. verdict None: no baseline."""

    verdict: Verdict | None = None
    cause: Cause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One probe, judged: an observation with its cause and its standing against the baseline."""

    observation: Observation
    cause: Cause | None
    expectation: Expectation
    standing: Standing

    @property
    def cell(self) -> str:
        return self.observation.cell

    @property
    def case(self) -> str:
        return self.observation.case

    @property
    def path(self) -> str:
        return self.observation.path

    @property
    def verdict(self) -> Verdict:
        return self.observation.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that a set of journals says, in order: what every report is a pure function of.

    cells: in the order of matrix.yaml. cases: by id. results: by cell (same order), case, path.
    generated: time of the newest observation ("" when there is none). machine: the one that made it.
    """

    cells: tuple[CellRecord, ...]
    cases: tuple[CaseRecord, ...]
    results: tuple[Result, ...]
    machines: tuple[MachineRecord, ...]
    generated: str
