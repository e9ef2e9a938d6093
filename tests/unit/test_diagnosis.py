"""Every cause is found by its rule in each release's way of saying it, and in nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.diagnosis import diagnose
from harness.results import Cause, GraphBreak, Observation, Raised, Verdict

DYNAMO = "torch._dynamo.exc"
INDUCTOR = "torch._inductor.exc"
VERBOSE = '\n\nSet TORCH_LOGS="+dynamo" and TORCHDYNAMO_VERBOSE=1 for more information\n'


def raised(kind: str, message: str = "", *bases: str, frame: str = "") -> Raised:
    return Raised(type=kind, message=message, bases=bases, frame=frame)


def frames(*files: str, last: str = "SomeError: it says something") -> str:
    """A traceback as the worker leaves it, outermost frame first."""
    lines = [f'  File "{file}", line 7, in f\n    do_it()' for file in files]
    return "\n".join(["Traceback (most recent call last):", *lines, last, ""])


def seen(*chain: Raised, traceback: str = "", **changes: Any) -> Observation:
    settings: dict[str, Any] = {
        "cell": "3.12-2.4",
        "case": "group/case",
        "path": "inductor",
        "verdict": Verdict.ERROR,
        "raised": chain,
        "traceback": traceback,
    }
    return Observation(**{**settings, **changes})


def wrapped(inner: str, backend: str = "inductor") -> tuple[tuple[str, Raised], ...]:
    """One failure of a backend as 2.0, 2.1 to 2.6, and 2.7 and later wrap it."""
    failed = f"{DYNAMO}.BackendCompilerFailed"
    bases = (failed, f"{DYNAMO}.TorchDynamoException", "RuntimeError")
    return (
        ("2.0", raised(failed, f"debug_wrapper raised {inner}{VERBOSE}")),
        ("2.4", raised(failed, f"backend='{backend}' raised:\n{inner}{VERBOSE}")),
        ("2.7", raised(f"{INDUCTOR}.InductorError", inner, *bases)),
    )


def compile_error(output: str) -> str:
    return f"CppCompileError: C++ compile error\n\nCommand:\ng++ k.cpp -o k.so\n\nOutput:\n{output}"


INNER = {
    Cause.CXX_COMPILER_MISSING: (
        "InvalidCxxCompiler: No working C++ compiler found in config.cpp.cxx: (None, 'g++')",
        "RuntimeError: Compiler: cl is not found.",
        "InvalidCxxCompiler: Compiler: cl is not found.",
        compile_error("g++: fatal error: cannot execute 'cc1plus': execvp: No such file"),
    ),
    Cause.CXX_HEADERS_MISSING: (
        compile_error("k.cpp:1:10: fatal error: Python.h: No such file or directory"),
        compile_error("k.cpp:2:10: fatal error: 'omp.h' file not found"),
        compile_error("k.cpp(2): fatal error C1083: Cannot open include file: 'omp.h'"),
        compile_error("/usr/bin/ld: cannot find -lgomp: No such file or directory"),
        compile_error("ld: library 'omp' not found"),
    ),
    Cause.CXX_CODEGEN_ERROR: (
        compile_error("k.cpp:29:28: error: no matching function for call to 'mod(Half&, float&)'"),
        compile_error("k.cpp:8:3: error: 'Vectorized' was not declared in this scope"),
    ),
    Cause.FILESYSTEM: (
        compile_error("/usr/bin/ld: final link failed: No space left on device"),
        compile_error("k.cpp: error: opening output file k.so: Permission denied"),
        "OSError: [Errno 28] No space left on device",
        "PermissionError: [Errno 13] Permission denied: '/cache/x'",
        "OSError: [Errno 30] Read-only file system: '/cache'",
        "ImportError: k.so: failed to map segment from shared object",
    ),
    Cause.DEPENDENCY_MISSING: (
        "ModuleNotFoundError: No module named 'setuptools'",
        "ModuleNotFoundError: No module named 'pkg_resources'",
        "ModuleNotFoundError: import of setuptools halted; None in sys.modules",
    ),
    Cause.TRITON_MISSING: (
        "RuntimeError: Cannot find a working triton installation. More information is elsewhere",
        "TritonMissing: Cannot find a working triton installation. It may be too old.",
        "ModuleNotFoundError: No module named 'triton'",
    ),
    Cause.GPU_UNSUPPORTED: (
        "RuntimeError: Found GTX 950 which is too old to be supported by the triton GPU compiler",
        "GPUTooOldForTriton: Found GTX 950, which is too old to be supported",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: Found no NVIDIA driver on your system.",
    ),
    Cause.DEPENDENCY_MISMATCH: (
        "TypeError: must be called with a dataclass type or instance",
        "RuntimeError: Numpy is not available",
    ),
    Cause.RECURSION_LIMIT: (
        "RecursionError: maximum recursion depth exceeded in comparison",
        "LoweringException: RecursionError: maximum recursion depth exceeded\n  target: aten.add",
    ),
    Cause.OUT_OF_MEMORY: ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",),
    Cause.BACKEND_FAILED: (
        "AssertionError: ",
        "AttributeError: 'View' object has no attribute 'freeze_layout'",
        "NotImplementedError: Cannot access storage of BatchedTensorImpl",
        "LoweringException: AssertionError: ",
    ),
}
WRAPPED = [
    pytest.param(cause, told, id=f"{cause.value}-{number}-{release}")
    for cause, texts in INNER.items()
    for number, text in enumerate(texts)
    for release, told in wrapped(text)
]


@pytest.mark.parametrize(("cause", "told"), WRAPPED)
def test_a_backends_failure_is_known_through_each_releases_wrapper(
    cause: Cause, told: Raised
) -> None:
    assert diagnose(seen(told)) is cause


@pytest.mark.parametrize(("cause", "told"), WRAPPED)
def test_a_suppressed_failure_is_known_by_the_break_that_it_left(
    cause: Cause, told: Raised
) -> None:
    first, second = (*told.message.splitlines(), "")[:2]
    reason = f"{first} {second}".strip() if first.endswith("raised:") else first
    broken = (GraphBreak(reason=reason),)
    found = diagnose(seen(verdict=Verdict.UNCOMPILED, breaks=broken))
    if told.type.endswith("InductorError") and cause is Cause.BACKEND_FAILED:
        assert found is Cause.GRAPH_BREAK  # its text alone does not say that a backend failed
    elif "C++ compile error" in reason:
        assert (
            found is Cause.CXX_CODEGEN_ERROR
        )  # what the compiler printed is not in the first line
    else:
        assert found is cause


RUNTIME = (
    (Cause.PYTHON_UNSUPPORTED, "Python 3.11+ not yet supported for torch.compile"),
    (Cause.PYTHON_UNSUPPORTED, "Dynamo is not supported on Python 3.12+"),
    (Cause.PYTHON_UNSUPPORTED, "torch.compile is not supported on Python 3.14+"),
    (Cause.PYTHON_UNSUPPORTED, "torch.compile is not supported on Python built with GIL disabled"),
    (Cause.PLATFORM_UNSUPPORTED, "Windows not yet supported for torch.compile"),
    (Cause.PLATFORM_UNSUPPORTED, "Windows not yet supported for inductor"),
    (
        Cause.CUDAGRAPH_OVERWRITTEN,
        (
            "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent"
            ' run. Stack trace: File "/app/model.py", line 5, in forward'
        ),
    ),
    (
        Cause.FEATURE_UNSUPPORTED,
        "torch.compile with aot_autograd does not currently support double backward",
    ),
    (Cause.DEPENDENCY_MISMATCH, "Numpy is not available"),
)


@pytest.mark.parametrize(("cause", "message"), RUNTIME)
def test_torchs_own_refusals_are_known_by_their_words(cause: Cause, message: str) -> None:
    own = frames("group/case.py", "torch/__init__.py", last=f"RuntimeError: {message}")
    assert diagnose(seen(raised("RuntimeError", message), traceback=own)) is cause
    assert diagnose(seen(raised("RuntimeError", message))) is cause


@pytest.mark.parametrize(("cause", "message"), RUNTIME)
def test_a_program_that_says_the_like_is_not_torch(cause: Cause, message: str) -> None:
    own = frames("group/case.py", last=f"ValueError: {message}")
    assert diagnose(seen(raised("ValueError", message), traceback=own)) is Cause.UNKNOWN
    quoted = f"cannot go on: {message}"
    told = raised(
        "torch._dynamo.exc.Unsupported", f"reason\n\nfrom user code:\n  raise X({quoted})"
    )
    assert diagnose(seen(told)) is Cause.GRAPH_BREAK


DYNAMOS = (
    (Cause.GRAPH_BREAK, "Unsupported", "missing: MATCH_CLASS"),
    (Cause.GRAPH_BREAK, "Unsupported", "call_function BuiltinVariable(print) [] {}"),
    (
        Cause.GRAPH_BREAK,
        "Unsupported",
        (
            "Missing bytecode handler\n  Explanation: Dynamo does not know the bytecode `MATCH_CLASS`."
            "\n\n  Developer debug context: MATCH_CLASS with args (data-dependent, recompile_limit"
            " reached)"
        ),
    ),
    (Cause.GRAPH_BREAK, "UserError", "torch.cond: expected both branches to return tensors"),
    (Cause.GRAPH_BREAK, "UncapturedHigherOrderOpError", "Cond doesn't work unless captured"),
    (Cause.RECOMPILE_LIMIT, "Unsupported", "cache_size_limit reached"),
    (Cause.RECOMPILE_LIMIT, "Unsupported", "accumulated_recompile_limit reached"),
    (Cause.RECOMPILE_LIMIT, "FailOnRecompileLimitHit", "Hard failure due to fullgraph=True"),
    (Cause.RECOMPILE_LIMIT, "RecompileLimitExceeded", "8 times"),
    (Cause.DATA_DEPENDENT, "Unsupported", "generic_jump TensorVariable()"),
    (Cause.DATA_DEPENDENT, "Unsupported", "Tensor.item"),
    (Cause.DATA_DEPENDENT, "Unsupported", "data dependent operator: aten._local_scalar_dense"),
    (Cause.DATA_DEPENDENT, "Unsupported", "dynamic shape operator: aten.nonzero.default"),
    (Cause.DATA_DEPENDENT, "Unsupported", "Data-dependent branching\n  Explanation: Detected"),
    (
        Cause.DATA_DEPENDENT,
        "UserError",
        "Consider annotating your code. Could not guard on data-dependent expression zuf0 > 0.0",
    ),
    (Cause.DYNAMO_INTERNAL_ERROR, "InternalTorchDynamoError", "KeyError: 412"),
    (Cause.DYNAMO_INTERNAL_ERROR, "InternalTorchDynamoError", "488"),
    (Cause.DYNAMO_INTERNAL_ERROR, "InternalTorchDynamoError", ""),
    (Cause.DYNAMO_INTERNAL_ERROR, "TorchRuntimeError", "Failed running call_method view(*())"),
    (Cause.CXX_COMPILER_MISSING, "InternalTorchDynamoError", "RuntimeError: Compiler: cl is not found."),
)  # fmt: skip


@pytest.mark.parametrize(("cause", "kind", "message"), DYNAMOS)
def test_what_dynamo_says_is_known_by_its_class_first(
    cause: Cause, kind: str, message: str
) -> None:
    told = f"{message}\n\nfrom user code:\n   File 'x.py', line 3, in f{VERBOSE}"
    assert diagnose(seen(raised(f"{DYNAMO}.{kind}", told))) is cause


def test_a_user_error_is_a_break_before_and_after_it_stopped_being_unsupported() -> None:
    text = "Dynamic slicing with Tensor arguments is not supported"
    old = raised(f"{DYNAMO}.UserError", text, f"{DYNAMO}.Unsupported", "RuntimeError")
    new = raised(f"{DYNAMO}.UserError", text, f"{DYNAMO}.TorchDynamoException", "RuntimeError")
    assert diagnose(seen(old)) is diagnose(seen(new)) is Cause.GRAPH_BREAK


def test_a_subclass_counts_as_what_it_is() -> None:
    told = raised("torch._dynamo.exc.Novel", "?", f"{DYNAMO}.Unsupported", "RuntimeError")
    assert diagnose(seen(told)) is Cause.GRAPH_BREAK


# --------------------------------------------------------------------------------------------- chains


def test_a_chain_is_read_from_the_inside_out() -> None:
    chain = (
        raised(f"{DYNAMO}.InternalTorchDynamoError", "boom"),
        raised(f"{DYNAMO}.TorchRuntimeError", "failed running"),
        raised("torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode", "u0 > 3"),
    )
    assert diagnose(seen(*chain)) is Cause.DATA_DEPENDENT


def test_a_cause_that_is_only_in_the_chain_counts_where_the_wrapper_hides_it() -> None:
    chain = (
        raised(f"{DYNAMO}.BackendCompilerFailed", "backend='inductor' raised:\nRuntimeError: ?"),
        raised("RuntimeError", "?"),
        raised(f"{INDUCTOR}.InvalidCxxCompiler", "No working C++ compiler found"),
    )
    assert diagnose(seen(*chain)) is Cause.CXX_COMPILER_MISSING


def test_a_failure_in_a_subprocess_brings_its_compilers_words() -> None:
    text = (
        "An exception occurred in a subprocess:\n\nTraceback (most recent call last):\n"
        f"  File 'x.py'\ntorch._inductor.exc.{compile_error('fatal error: omp.h: No such file or directory')}"
    )
    told = raised("torch._inductor.compile_worker.subproc_pool.SubprocException", text)
    assert diagnose(seen(told)) is Cause.CXX_HEADERS_MISSING


def test_the_outermost_wrapper_counts_where_nothing_inside_says_more() -> None:
    chain = (
        raised(f"{DYNAMO}.InternalTorchDynamoError", ""),
        raised("NotImplementedError", "Cannot access storage of BatchedTensorImpl"),
    )
    assert diagnose(seen(*chain)) is Cause.DYNAMO_INTERNAL_ERROR


# ---------------------------------------------------------------------------------- whose code it was


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        (("group/case.py", "torch/_inductor/scheduler.py"), Cause.BACKEND_FAILED),
        (("group/case.py", "torch/_functorch/partitioners.py"), Cause.BACKEND_FAILED),
        (("group/case.py", "torch/_dynamo/guards.py"), Cause.DYNAMO_INTERNAL_ERROR),
        # Through packages and the standard library to whoever called them.
        (
            ("group/case.py", "torch/_inductor/utils.py", "sympy/core/cache.py"),
            Cause.BACKEND_FAILED,
        ),
        (
            ("group/case.py", "torch/_inductor/x.py", "python3.12/contextlib.py"),
            Cause.BACKEND_FAILED,
        ),
        (("group/case.py", "torch/_dynamo/x.py", "torch/nn/functional.py"), Cause.DYNAMO_INTERNAL_ERROR),
        # The program's own failure, with the compiler's frames above it or without.
        (("group/case.py", "torch/_dynamo/eval_frame.py", "group/case.py"), Cause.UNKNOWN),
        (("group/case.py", "torch/nn/functional.py"), Cause.UNKNOWN),
        (("group/case.py", "pandas/core/frame.py"), Cause.UNKNOWN),
        (("group/case.py",), Cause.UNKNOWN),
        ((), Cause.UNKNOWN),
        # As a user pastes it.
        (
            ("/home/u/train.py", "/home/u/venv/lib/python3.12/site-packages/torch/_inductor/ir.py"),
            Cause.BACKEND_FAILED,
        ),
        (
            ("/home/u/train.py", "/v/lib/python3.12/site-packages/torch/_dynamo/x.py", "/home/u/train.py"),
            Cause.UNKNOWN,
        ),
        (("C:\\app\\train.py", "C:\\venv\\Lib\\site-packages\\torch\\_inductor\\ir.py"), Cause.BACKEND_FAILED),
        (("C:\\v\\Lib\\site-packages\\torch\\_dynamo\\x.py", "C:\\app\\train.py"), Cause.UNKNOWN),
        (("/home/u/torch/_inductor/mine.py",), Cause.UNKNOWN),
        (("/v/lib/python3.12/site-packages/torchvision/_inductor/x.py",), Cause.UNKNOWN),
    ],
)  # fmt: skip
def test_an_unwrapped_failure_is_his_whose_code_stands_innermost(
    files: tuple[str, ...], cause: Cause
) -> None:
    for kind in ("AttributeError", "ValueError", "AssertionError"):
        assert diagnose(seen(raised(kind, "?"), traceback=frames(*files))) is cause


def test_only_the_last_traceback_counts_and_only_its_frames() -> None:
    early = frames("group/case.py", "torch/_dynamo/x.py", last="KeyError: 1")
    quoting = 'AssertionError: \n\nfrom user code:\n   File "group/case.py", line 16, in run\n'
    late = frames("group/case.py", "torch/_inductor/x.py", last=quoting)
    both = f"{early}\nDuring handling of the above exception, another occurred:\n\n{late}"
    assert diagnose(seen(raised("AssertionError"), traceback=both)) is Cause.BACKEND_FAILED


def test_a_traceback_that_was_cut_still_counts() -> None:
    cut = "[cut]\n    return fn(*args)\n" + frames("torch/_inductor/x.py").partition("\n")[2]
    assert diagnose(seen(raised("KeyError", "'x'"), traceback=cut)) is Cause.BACKEND_FAILED


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (raised("ModuleNotFoundError", "No module named 'setuptools'"), Cause.DEPENDENCY_MISSING),
        (raised("RecursionError", "maximum recursion depth"), Cause.RECURSION_LIMIT),
        (raised("PermissionError", "[Errno 13] Permission denied"), Cause.FILESYSTEM),
    ],
)
def test_what_may_be_anybodys_is_torchs_only_in_torchs_code(error: Raised, cause: Cause) -> None:
    inside = frames("group/case.py", "torch/utils/cpp_extension.py")
    assert diagnose(seen(error, traceback=inside)) is cause
    for outside in (
        frames("group/case.py"),
        frames("group/case.py", "theirs/models.py"),
        frames("group/case.py", "torch/_dynamo/eval_frame.py", "group/case.py"),
    ):
        assert diagnose(seen(error, traceback=outside)) is Cause.UNKNOWN


def test_torch_that_torch_itself_does_not_find_is_no_dependency() -> None:
    error = raised("ModuleNotFoundError", "No module named 'torch._higher_order_ops.novel'")
    inside = frames("group/case.py", "torch/_inductor/x.py")
    assert diagnose(seen(error, traceback=inside)) is Cause.BACKEND_FAILED


# ----------------------------------------------------------------------------------- importing torch


def importing(kind: str, message: str, *files: str) -> Observation:
    inside = 'Traceback (most recent call last):\n  File "group/case.py", line 3, in <module>\n'
    inside += '    import torch\n  File "torch/__init__.py", line 1477, in <module>\n    from x import *\n'
    inside += "".join(f'  File "{file}", line 9, in f\n' for file in files)
    return seen(raised(kind, message), traceback=f"{inside}{kind}: {message}\n")


def test_a_torch_that_cannot_be_imported_is_broken() -> None:
    library = "libcudart.so.12: cannot open shared object file: No such file or directory"
    assert diagnose(importing("ImportError", library)) is Cause.IMPORT_BROKEN
    assert (
        diagnose(importing("OSError", library, "python3.12/ctypes/__init__.py"))
        is Cause.IMPORT_BROKEN
    )
    indent = "expected an indented block after function definition on line 4"
    broken = importing("IndentationError", indent, "torch/_sources.py", "python3.13/ast.py")
    assert diagnose(broken) is Cause.IMPORT_BROKEN
    on_the_way = importing("AttributeError", "no attribute", "torch/_functorch/apis.py")
    assert diagnose(on_the_way) is Cause.IMPORT_BROKEN


def test_a_source_of_torchs_own_that_python_does_not_read_is_a_broken_import() -> None:
    indent = "expected an indented block after function definition on line 4"
    pasted = frames(
        "/v/lib/python3.13/site-packages/torch/_sources.py", "/opt/lib/python3.13/ast.py"
    )
    assert (
        diagnose(seen(raised("IndentationError", indent), traceback=pasted)) is Cause.IMPORT_BROKEN
    )
    own = frames("group/case.py")
    assert diagnose(seen(raised("IndentationError", indent), traceback=own)) is Cause.UNKNOWN


def test_why_torch_could_not_be_imported_counts_more_than_that() -> None:
    missing = importing("ModuleNotFoundError", "No module named 'typing_extensions'")
    assert diagnose(missing) is Cause.DEPENDENCY_MISSING
    noexec = importing("ImportError", "libtorch.so: failed to map segment from shared object")
    assert diagnose(noexec) is Cause.FILESYSTEM


# -------------------------------------------------------------------------------- what a user writes


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("ValueError", "Dynamo: my own wrapper says no"),
        ("RuntimeError", "while compiling: Dynamo is not supported on Python 3.13+"),
        ("ValueError", "a data-dependent choice of the user's"),
        ("KeyError", "'recompile_limit reached'"),
        ("ModuleNotFoundError", "No module named 'my_package'"),
        ("ImportError", "cannot import name 'x' from 'my_package'"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'Python.h'"),
        ("OSError", "[Errno 28] No space left on device"),
        ("RuntimeError", "C++ compile error in my own extension"),
        ("my_package.Unsupported", "not by torch"),
        ("my_package.InvalidCxxCompiler", "not by torch"),
    ],
)
def test_what_a_program_raises_itself_is_unknown(kind: str, message: str) -> None:
    own = frames("group/case.py", "my_package/__init__.py", last=f"{kind}: {message}")
    assert diagnose(seen(raised(kind, message), traceback=own)) is Cause.UNKNOWN


def test_a_script_that_only_left_with_a_status_is_unknown() -> None:
    assert diagnose(seen(message="exit status 3", exit_status=3)) is Cause.UNKNOWN


# ---------------------------------------------------------------------------------------- by verdict


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_that_does_not_work_has_a_cause_and_no_other_has(verdict: Verdict) -> None:
    assert (diagnose(seen(verdict=verdict)) is not None) == (
        verdict.works is False or verdict is Verdict.INVALID
    )


@pytest.mark.parametrize(
    ("verdict", "cause"),
    [
        (Verdict.WRONG, Cause.WRONG_RESULT),
        (Verdict.CRASH, Cause.CRASH),
        (Verdict.TIMEOUT, Cause.TIMEOUT),
        (Verdict.OUT_OF_MEMORY, Cause.OUT_OF_MEMORY),
        (Verdict.INVALID, Cause.EAGER_FAILED),
        (Verdict.UNCOMPILED, Cause.NOT_CAPTURED),
    ],
)
def test_some_verdicts_say_their_cause_themselves(verdict: Verdict, cause: Cause) -> None:
    assert diagnose(seen(raised("RuntimeError", "anything"), verdict=verdict)) is cause


@pytest.mark.parametrize(
    ("reasons", "cause"),
    [
        (("missing: CHECK_EG_MATCH",), Cause.GRAPH_BREAK),
        (("call torch._dynamo.disable() wrapped function <function work at 0x…>",), Cause.GRAPH_BREAK),
        (("generic_jump TensorVariable()",), Cause.DATA_DEPENDENT),
        (("Tensor.item", "missing: X"), Cause.DATA_DEPENDENT),
        (("missing: X", "debug_wrapper raised ModuleNotFoundError: No module named 'setuptools'"), Cause.DEPENDENCY_MISSING),
        (("failing raised RuntimeError: this backend compiles nothing",), Cause.BACKEND_FAILED),
        (("backend='failing' raised: RuntimeError: this backend compiles nothing",), Cause.BACKEND_FAILED),
        (("RuntimeError: the user's own words",), Cause.GRAPH_BREAK),
    ],
)  # fmt: skip
def test_what_was_not_compiled_has_the_cause_of_its_breaks(
    reasons: tuple[str, ...], cause: Cause
) -> None:
    breaks = tuple(GraphBreak(reason=reason) for reason in reasons)
    assert diagnose(seen(verdict=Verdict.UNCOMPILED, breaks=breaks)) is cause


def test_every_cause_can_be_found() -> None:
    by_text = {*INNER, *(cause for cause, _ in RUNTIME), *(cause for cause, *_ in DYNAMOS)}
    by_verdict = {
        diagnose(seen(verdict=verdict)) for verdict in Verdict if diagnose(seen(verdict=verdict))
    }
    assert by_text | by_verdict | {Cause.IMPORT_BROKEN} == set(Cause)
