"""Why a probe did not work: from what was observed to one name of the closed list of causes.

The rules read exceptions from the inside out, because each release wraps a backend's failure in
another way (`debug_wrapper raised`, `backend='inductor' raised:`, `InductorError:`), and they look at
what an exception *is* before what it says, because texts change from release to release. Where nothing
else decides, it counts whose code stands innermost: what a program raises itself is not torch's failure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.results import Cause, Observation, Raised, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    """Nothing was compiled: the breaks say why, and may hold a suppressed failure's text."""
    for found in observation.breaks:
        told = Raised(type="torch._dynamo.exc.BackendCompilerFailed", message=found.reason)
        cause = _first_of(_told([told]), is_torchs=True)
        if cause is not None:
            return cause
        if _BACKEND_RAISED.match(found.reason):
            return Cause.BACKEND_FAILED
    return Cause.GRAPH_BREAK if observation.breaks else Cause.NOT_CAPTURED


_BACKEND_RAISED = re.compile(r"backend=\S+ raised:|\w+ raised [A-Z]\w*:")
"""How a suppressed BackendCompilerFailed reads from 2.1 on, and in 2.0."""


def _of_exception(observation: Observation) -> Cause:
    chain, traceback = observation.raised, observation.traceback.replace("\\", "/")
    owner = _owner(traceback, observation.case)
    is_torchs = owner.startswith("torch") or any(r.type.startswith("torch.") for r in chain)
    cause = _first_of(_told(chain), is_torchs=is_torchs)
    if cause is None and _is_import_of_torch(chain, traceback):
        cause = Cause.IMPORT_BROKEN
    return cause or _of_wrapper(chain) or _of_owner(owner)


# ------------------------------------------------------------------------- one exception of a chain


def _told(chain: Sequence[Raised]) -> list[Raised]:
    """The exceptions of a chain, outermost first, with those that are only told of in another's text."""
    return [told for raised in chain for told in _unwrapped(raised)]


_WRAPPING = (
    "BackendCompilerFailed",
    "InductorError",
    "InternalTorchDynamoError",
    "LoweringException",
    "SubprocException",
)
_INNER = re.compile(r"(?:\S+ raised:?\s+)?((?:\w+\.)*[A-Z]\w*)(?::[ \n]?|$)(.*)", re.DOTALL)


def _unwrapped(raised: Raised) -> Iterator[Raised]:
    """The exception itself, without the user's code in its text; then the one that its text tells of."""
    text = re.split(r"\n+from user code:|\n+\s*Developer debug context:", raised.message)[0]
    yield replace(raised, message=text)
    inner = _INNER.match(text.strip()) if _name(raised) in _WRAPPING else None
    if inner is not None:
        yield from _unwrapped(Raised(type=inner[1], message=inner[2]))


def _first_of(told: Sequence[Raised], *, is_torchs: bool) -> Cause | None:
    """The first cause from the inside out. is_torchs: torch's code stands between failure and program."""
    for raised in reversed(told):
        cause = _of_type(raised, is_torchs=is_torchs) or _of_text(raised, is_torchs=is_torchs)
        if cause is not None:
            return cause
    return None


def _name(raised: Raised) -> str:
    return raised.type.rpartition(".")[2]


_TYPES = {
    "InvalidCxxCompiler": Cause.CXX_COMPILER_MISSING,
    "TritonMissing": Cause.TRITON_MISSING,
    "TritonUnavailableError": Cause.TRITON_MISSING,
    "GPUTooOldForTriton": Cause.GPU_UNSUPPORTED,
    "FailOnRecompileLimitHit": Cause.RECOMPILE_LIMIT,
    "RecompileLimitExceeded": Cause.RECOMPILE_LIMIT,
    "GuardOnDataDependentSymNode": Cause.DATA_DEPENDENT,
    "DataDependentOutputException": Cause.DATA_DEPENDENT,
    "DynamicOutputShapeException": Cause.DATA_DEPENDENT,
    "OutOfMemoryError": Cause.OUT_OF_MEMORY,
}
"""Exceptions that mean one thing wherever they stand in a chain (torch._inductor.exc, torch._dynamo.exc,
torch.fx.experimental.symbolic_shapes, torch._subclasses.fake_tensor)."""

_MISSING_MODULE = re.compile(r"No module named '?(\w+)|import of (\w+)[\w.]* halted")


def _of_type(raised: Raised, *, is_torchs: bool) -> Cause | None:
    name = _name(raised)
    if name == "CppCompileError" or (name in _WRAPPING and "C++ compile error" in raised.message):
        return _of_compiler_output(raised.message)
    if not is_torchs:
        return None
    if name == "RecursionError":
        return Cause.RECURSION_LIMIT
    missing = _MISSING_MODULE.search(raised.message)
    if missing is not None and name in ("ModuleNotFoundError", "ImportError"):
        package = missing[1] or missing[2]
        if package == "triton":
            return Cause.TRITON_MISSING
        return None if package == "torch" else Cause.DEPENDENCY_MISSING
    return _TYPES.get(name)


def _of_compiler_output(message: str) -> Cause:
    """A C++ compiler ran and failed: what it printed says whose fault that is."""
    output = message.partition("Output:")[2] or message
    if re.search(_NO_ROOM + r"|not writable", output):
        return Cause.FILESYSTEM
    if re.search(r"cannot execute .?cc1plus", output):
        return Cause.CXX_COMPILER_MISSING
    for pattern in _NO_HEADERS:
        if re.search(pattern, output):
            return Cause.CXX_HEADERS_MISSING
    return Cause.CXX_CODEGEN_ERROR


_NO_HEADERS = (
    r"fatal error: [\w./+-]+: No such file or directory",  # g++
    r"fatal error: '[\w./+-]+' file not found",  # clang
    r"fatal error C1083",  # MSVC: cannot open include file
    r"cannot find -l\w+|library '?-?\w+'? not found",  # the linkers
)
_NO_ROOM = r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"

_TEXTS: tuple[tuple[Cause, str, str], ...] = (
    (
        Cause.PYTHON_UNSUPPORTED,
        "RuntimeError",
        (
            r"^(?:Dynamo|torch\.compile) is not supported on Python"
            r"|^Python 3\.\d+\+ not yet supported for torch\.compile"
        ),
    ),
    (
        Cause.PLATFORM_UNSUPPORTED,
        "RuntimeError",
        r"^Windows not yet supported for (?:torch\.compile|inductor)",
    ),
    (
        Cause.CUDAGRAPH_OVERWRITTEN,
        "RuntimeError",
        r"accessing tensor output of CUDAGraphs that has been overwritten",
    ),
    (Cause.TRITON_MISSING, "RuntimeError", r"^Cannot find a working triton installation"),
    (
        Cause.GPU_UNSUPPORTED,
        "RuntimeError AcceleratorError",
        (
            r"too old to be supported by the triton|no kernel image is available for execution"
            r"|Found no NVIDIA driver|NVIDIA driver on your system is too old"
        ),
    ),
    (Cause.CXX_COMPILER_MISSING, "RuntimeError", r"^Compiler: \S+ is not found"),
    # NumPy 2 below torch 2.3; Triton 3.2 or later below torch 2.6 (AttrsDescriptor).
    (Cause.DEPENDENCY_MISMATCH, "RuntimeError", r"^Numpy is not available"),
    (Cause.DEPENDENCY_MISMATCH, "ImportError AttributeError", r"_ARRAY_API not found"),
    (
        Cause.DEPENDENCY_MISMATCH,
        "TypeError torch's",
        r"must be called with a dataclass type or instance",
    ),
    (Cause.RECOMPILE_LIMIT, "torch.", r"(?:cache_size_limit|recompile_limit) reached"),
    (
        Cause.FEATURE_UNSUPPORTED,
        "RuntimeError",
        r"^torch\.compile with aot_autograd does not currently support",
    ),
    (
        Cause.DATA_DEPENDENT,
        "torch.",
        (
            r"[Dd]ata[- ]dependent|[Dd]ynamic shape operator|Tensor\.item\(\) call"
            # Up to 2.6: a jump on a tensor's value, and `.item()` or `.tolist()`.
            r"|^generic_jump (?:Tensor|SymNode)Variable|^Tensor\.(?:item|tolist)\b"
        ),
    ),
    (Cause.DATA_DEPENDENT, "torch's", r"must also set dynamic_shapes = True"),
    (Cause.FILESYSTEM, "OSError ImportError", r"failed to map segment from shared object"),
    (Cause.FILESYSTEM, "OSError PermissionError torch's", _NO_ROOM),
)
"""Cause; names of the exceptions that say it (`torch.`: any of torch's own classes; `torch's`: only where
torch's code stands between the failure and the program); what they say."""


def _of_text(raised: Raised, *, is_torchs: bool) -> Cause | None:
    kind = "torch." if raised.type.startswith("torch.") else _name(raised)
    for cause, said_by, pattern in _TEXTS:
        kinds = said_by.split()
        if "torch's" in kinds:
            kinds.remove("torch's")
            if not is_torchs:
                continue
        if (not kinds or kind in kinds) and re.search(pattern, raised.message):
            return cause
    return None


# --------------------------------------------------------------------- when no exception says it itself


def _is_import_of_torch(chain: Sequence[Raised], traceback: str) -> bool:
    """Whether torch itself failed to come up, before any case could ask it anything.

    On import torch parses source of its own (torch/_sources.py), which CPython 3.13.8 breaks.
    """
    if re.search(r'torch/__init__\.py", line \d+, in <module>', traceback):
        return True
    names = {name for raised in chain for name in (raised.type, *raised.bases)}
    is_syntax = not names.isdisjoint({"SyntaxError", "IndentationError"})
    return is_syntax and "torch/_sources.py" in traceback


_WRAPPERS = (
    ("InternalTorchDynamoError", Cause.DYNAMO_INTERNAL_ERROR),
    ("Unsupported", Cause.GRAPH_BREAK),
    ("UserError", Cause.GRAPH_BREAK),  # an Unsupported until 2.11
    ("UncapturedHigherOrderOpError", Cause.GRAPH_BREAK),
    ("BackendCompilerFailed", Cause.BACKEND_FAILED),
    ("InductorError", Cause.BACKEND_FAILED),
    ("TorchRuntimeError", Cause.DYNAMO_INTERNAL_ERROR),
)


def _of_wrapper(chain: Sequence[Raised]) -> Cause | None:
    """What the outermost exception of Dynamo's own says of a failure that nothing inside explains."""
    for raised in chain:
        names = {
            name.rpartition(".")[2]
            for name in (raised.type, *raised.bases)
            if name.startswith("torch.")
        }
        for name, cause in _WRAPPERS:
            if name in names:
                return cause
    return None


def _owner(traceback: str, case: str) -> str:
    """Whose code stands innermost in the last traceback, other packages passed over.

    `torch/_dynamo`, `torch/_inductor`, `torch/_functorch`; `torch` for the rest of it; `program`; "".
    traceback: with forward slashes. case: id of the case, by which its own file is named in it.
    """
    last = traceback.rpartition("Traceback (most recent call last):")[2]
    # Below the frames stands the exception, whose text may quote frames of the user's code.
    last = re.split(r"^[A-Za-z_][\w.]*(?::|$)", last, maxsplit=1, flags=re.MULTILINE)[0]
    seen = ""
    for file in reversed(re.findall(r'^ *File "([^"]+)"', last, re.MULTILINE)):
        of_torch = re.search(r"(?:^|site-packages/)(torch/(?:_dynamo|_inductor|_functorch)?)", file)
        if of_torch is not None:
            if of_torch[1] != "torch/":
                return of_torch[1]
            seen = "torch"
        elif _is_program(file, case):
            return seen or "program"
    return seen


def _is_program(file: str, case: str) -> bool:
    """Whether a file is the user's: the case, or a full path that is no installed package's."""
    if file == f"{case}.py":
        return True
    is_full = file.startswith("/") or re.match(r"[A-Za-z]:/", file) is not None
    return is_full and not re.search(r"/(?:site-packages|dist-packages|lib/python3\.\d+)/", file)


def _of_owner(owner: str) -> Cause:
    """Unwrapped failures (a backward compile before 2.7)."""
    if owner in ("torch/_inductor", "torch/_functorch"):
        return Cause.BACKEND_FAILED
    return Cause.DYNAMO_INTERNAL_ERROR if owner == "torch/_dynamo" else Cause.UNKNOWN
