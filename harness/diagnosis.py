"""Why a probe did not work: from what was observed to one name of the closed list of causes.

The rules read exceptions from the inside out, because each release wraps a backend's failure in
another way (`debug_wrapper raised`, `backend='inductor' raised:`, `InductorError:`), and they look at
what an exception *is* before what it says, because texts change from release to release.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.results import Cause, Observation, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.results import Raised

_BY_VERDICT = {
    Verdict.WRONG: Cause.WRONG_RESULT,
    Verdict.CRASH: Cause.CRASH,
    Verdict.TIMEOUT: Cause.TIMEOUT,
    Verdict.OUT_OF_MEMORY: Cause.OUT_OF_MEMORY,
    Verdict.INVALID: Cause.EAGER_FAILED,
}


def diagnose(observation: Observation) -> Cause | None:
    """The cause of a verdict that is not `works`; None where it works or says nothing of the compiler."""
    verdict = observation.verdict
    if verdict.works or verdict in (Verdict.UNAVAILABLE, Verdict.NOT_RUN):
        return None
    if verdict in _BY_VERDICT:
        return _BY_VERDICT[verdict]
    if verdict is Verdict.UNCOMPILED:
        return _of_uncompiled(observation)
    return _of_exception(observation)


def _of_uncompiled(observation: Observation) -> Cause:
    """Nothing was compiled: the first break says why, and may hold a suppressed failure's text."""
    if not observation.breaks:
        return Cause.NOT_CAPTURED
    text = "\n".join(found.reason for found in observation.breaks)
    return _of_text(text) or Cause.GRAPH_BREAK


def _of_exception(observation: Observation) -> Cause:
    for raised in reversed(observation.raised):
        cause = _of_type(raised) or _of_text(f"{_name(raised)}: {raised.message}")
        if cause is not None:
            return cause
    if _is_import_of_torch(observation):
        return Cause.IMPORT_BROKEN
    cause = _of_wrapper(observation.raised)
    if cause is not None:
        return cause
    return _of_frames(observation.traceback) or Cause.UNKNOWN


def _name(raised: Raised) -> str:
    return raised.type.rpartition(".")[2]


_TYPES = {
    "InvalidCxxCompiler": Cause.CXX_COMPILER_MISSING,
    "TritonMissing": Cause.TRITON_MISSING,
    "GPUTooOldForTriton": Cause.GPU_UNSUPPORTED,
    "RecursionError": Cause.RECURSION_LIMIT,
    "FailOnRecompileLimitHit": Cause.RECOMPILE_LIMIT,
    "RecompileLimitExceeded": Cause.RECOMPILE_LIMIT,
    "GuardOnDataDependentSymNode": Cause.DATA_DEPENDENT,
    "DataDependentOutputException": Cause.DATA_DEPENDENT,
    "DynamicOutputShapeException": Cause.DATA_DEPENDENT,
}
"""Exceptions that mean one thing wherever they stand in a chain (torch._inductor.exc, torch._dynamo.exc,
torch.fx.experimental.symbolic_shapes, torch._subclasses.fake_tensor)."""


def _of_type(raised: Raised) -> Cause | None:
    name = _name(raised)
    if name == "CppCompileError" or "C++ compile error" in raised.message:
        return _of_compiler_output(raised.message)
    if name == "ModuleNotFoundError":
        found = re.search(r"(?:No module named '|import of )([\w.]+)", raised.message)
        package = found.group(1).partition(".")[0] if found else ""
        return None if package == "torch" else Cause.DEPENDENCY_MISSING
    return _TYPES.get(name)


_NO_ROOM = r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"

_TEXTS = (
    (
        Cause.PYTHON_UNSUPPORTED,
        (
            r"(?:Dynamo|torch\.compile) is not supported on Python"
            r"|Python 3\.\d+\+ not yet supported for torch\.compile"
        ),
    ),
    (Cause.PLATFORM_UNSUPPORTED, r"Windows not yet supported for (?:torch\.compile|inductor)"),
    (
        Cause.CUDAGRAPH_OVERWRITTEN,
        r"accessing tensor output of CUDAGraphs that has been overwritten",
    ),
    (Cause.TRITON_MISSING, r"Cannot find a working triton installation"),
    (Cause.GPU_UNSUPPORTED, r"too old to be supported by the triton"),
    (
        Cause.CXX_COMPILER_MISSING,
        r"No working C\+\+ compiler found|Compiler: \S+ is not found|InvalidCxxCompiler",
    ),
    (
        Cause.DEPENDENCY_MISMATCH,
        # NumPy 2 below torch 2.3; Triton 3.2 or later below torch 2.6 (AttrsDescriptor).
        r"Numpy is not available|_ARRAY_API not found|must be called with a dataclass type or instance",
    ),
    (
        Cause.DEPENDENCY_MISSING,
        r"No module named '(?!torch\b)[\w.]+'|import of (?!torch\b)[\w.]+ halted; None in sys\.modules",
    ),
    (
        Cause.RECOMPILE_LIMIT,
        r"(?:cache_size_limit|recompile_limit) reached|FailOnRecompileLimitHit",
    ),
    (Cause.FEATURE_UNSUPPORTED, r"does not currently support double backward"),
    (
        Cause.DATA_DEPENDENT,
        (
            r"Could not (?:guard on|extract specialized integer from) data-dependent|[Dd]ata-dependent"
            r"|GuardOnDataDependentSymNode|must also set dynamic_shapes = True"
        ),
    ),
    (Cause.FILESYSTEM, _NO_ROOM + r"|failed to map segment from shared object"),
)


def _of_text(text: str) -> Cause | None:
    for cause, pattern in _TEXTS:
        if re.search(pattern, text):
            return cause
    return None


def _of_compiler_output(message: str) -> Cause:
    """A C++ compiler ran and failed: what it printed says whose fault that is."""
    output = message.partition("Output:")[2] or message
    if re.search(_NO_ROOM + r"|not writable", output):
        return Cause.FILESYSTEM
    if re.search(r"fatal error: [\w./+-]+: No such file or directory|cannot find -l\w+", output):
        return Cause.CXX_HEADERS_MISSING
    return Cause.CXX_CODEGEN_ERROR


def _is_import_of_torch(observation: Observation) -> bool:
    """Whether torch itself failed to come up, before any case could ask it anything."""
    text = observation.traceback
    return (
        "torch/__init__.py" in text.replace("\\", "/")
        and "import torch" in text
        and not re.search(r"torch[/\\]_(?:dynamo|inductor|functorch)", text)
    )


_WRAPPERS = (
    ("InternalTorchDynamoError", Cause.DYNAMO_INTERNAL_ERROR),
    ("Unsupported", Cause.GRAPH_BREAK),
    ("UncapturedHigherOrderOpError", Cause.GRAPH_BREAK),
    ("BackendCompilerFailed", Cause.BACKEND_FAILED),
    ("TorchRuntimeError", Cause.DYNAMO_INTERNAL_ERROR),
)


def _of_wrapper(chain: Sequence[Raised]) -> Cause | None:
    """What the outermost exception of Dynamo's own says of a failure that nothing inside explains."""
    for raised in chain:
        names = {_name(raised), *(base.rpartition(".")[2] for base in raised.bases)}
        for name, cause in _WRAPPERS:
            if name in names:
                return cause
    return None


def _of_frames(traceback: str) -> Cause | None:
    """Unwrapped failures (a backward compile before 2.7): decided by whose frames stand innermost."""
    frames = re.findall(r'File "[^"]*[/\\]torch[/\\](_inductor|_functorch|_dynamo)[/\\]', traceback)
    if not frames:
        return None
    return Cause.DYNAMO_INTERNAL_ERROR if frames[-1] == "_dynamo" else Cause.BACKEND_FAILED
