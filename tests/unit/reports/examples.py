"""Findings to render: one realistic set, one as hostile as a case can make it, and ones that hold little."""

from __future__ import annotations

import dataclasses
from typing import Any

from harness.results import (
    CaseRecord,
    Cause,
    CellRecord,
    Expectation,
    Findings,
    GraphBreak,
    MachineRecord,
    NotRunReason,
    Observation,
    Raised,
    Result,
    Standing,
    Verdict,
)

MAIN_PATHS = ("dynamo", "aot", "inductor")

REFUSALS = {
    "3.11-2.0": "Python 3.11+ not yet supported for torch.compile",
    "3.12-2.3": "Dynamo is not supported on Python 3.12+",
    "3.13-2.5": "Dynamo is not supported on Python 3.13+",
}


def make_cell(id: str, torch: str, **changes: Any) -> CellRecord:
    """A measured CPU cell on Linux, save for the changes."""
    python = id.split("-", maxsplit=1)[0]
    cell = CellRecord(
        id=id,
        python=python,
        torch=torch,
        device="cpu",
        platform="linux-x86_64",
        era="release",
        status="measured",
        python_version=f"{python}.9",
        torch_version=f"{torch}+cpu",
        environment=f"env-{id}",
        index="cpu",
        lock="5f" * 32,
        packages={"torch": f"{torch}+cpu", "numpy": "1.26.4", "sympy": "1.12"},
        machine="m1",
        at="2026-12-01T04:00:00Z",
    )
    return dataclasses.replace(cell, **changes)


def make_unmeasured(
    id: str, torch: str, reason: NotRunReason, detail: str, **changes: Any
) -> CellRecord:
    """A cell that nobody could look into."""
    return make_cell(
        id,
        torch,
        status="not-run",
        reason=reason,
        detail=detail,
        python_version="",
        torch_version="",
        environment="",
        index="",
        lock="",
        packages={},
        **changes,
    )


def make_case(
    id: str, title: str, paths: tuple[str, ...] = MAIN_PATHS, **changes: Any
) -> CaseRecord:
    """A case whose text is a few lines that could run."""
    case = CaseRecord(
        id=id,
        title=title,
        category=id.rpartition("/")[0],
        kind="run",
        paths=paths,
        source=("https://github.com/pytorch/pytorch/issues/171274",),
        digest="ab" * 32,
        text=f'"""{title}"""\n\nimport torch\n\n\ndef run(x):\n    return x.sin() + 1\n\n\n'
        "def inputs():\n    return (torch.randn(8),)\n",
    )
    return dataclasses.replace(case, **changes)


def make_result(
    cell: str,
    case: str,
    path: str,
    verdict: Verdict = Verdict.FULL,
    *,
    cause: Cause | None = None,
    standing: Standing = Standing.EXPECTED,
    expected: Verdict | None = None,
    expected_cause: Cause | None = None,
    **seen: Any,
) -> Result:
    """One judged probe; with no `expected` given, the baseline knew exactly this, or nothing when new."""
    facts: dict[str, Any] = {
        "environment": f"env-{cell}",
        "case_digest": "ab" * 32,
        "protocol": 1,
        "at": "2026-12-01T04:00:00Z",
        "seconds": 1.2345 if path == "inductor" else 0.0625,
        "peak_bytes": 650_000_000,
        "isolation": "fork",
        "graphs": 1 if verdict is Verdict.FULL else 0,
        "ops": 2 if verdict is Verdict.FULL else 0,
    }
    if not verdict.is_probed:
        facts = {}
    observation = Observation(cell=cell, case=case, path=path, verdict=verdict, **{**facts, **seen})
    if standing is Standing.EXPECTED and expected is None:
        expected, expected_cause = verdict, cause
    return Result(
        observation=observation,
        cause=cause,
        expectation=Expectation(verdict=expected, cause=expected_cause),
        standing=standing,
    )


def make_refusal(cell: str, case: str, path: str) -> Result:
    message = REFUSALS[cell]
    return make_result(
        cell,
        case,
        path,
        Verdict.ERROR,
        cause=Cause.PYTHON_UNSUPPORTED,
        message=f"RuntimeError: {message}",
        raised=(Raised(type="builtins.RuntimeError", message=message),),
        seconds=0.011,
    )


MACHINE = MachineRecord(
    id="m1",
    harness="0.1.0",
    protocol=1,
    facts={"system": "Linux 6.1", "processor": "x86_64", "cores": "2", "compiler": "g++ 12.2.0"},
    at="2026-12-01T03:55:00Z",
)

MATCH_BREAK = GraphBreak(
    reason="Missing bytecode handler: MATCH_CLASS",
    code="GB0082",
    file="bytecode/match_class",
    line=31,
)

CASES = (
    make_case(
        "autograd/double_backward",
        "Double backward through a compiled function",
        ("aot", "inductor"),
    ),
    make_case("bytecode/except_star", "``except*`` handlers inside a compiled function"),
    make_case(
        "bytecode/listcomp_break", "A graph break inside a list comprehension keeps the other items"
    ),
    make_case("bytecode/match_class", "``match`` with a class pattern"),
    make_case(
        "claims/suppress_errors", "``suppress_errors = True`` falls back: was anything compiled?"
    ),
    make_case("contrast/jit_trace", "The same model through ``torch.jit.trace``", ("jit-trace",)),
    make_case("environment/no_cxx", "Inductor without a C++ compiler", ("inductor",)),
    make_case("gate/decorator", "``@torch.compile`` on a function"),
    make_case("gate/module", "``torch.compile(nn.Module())``"),
    make_case("models/attention", "A small attention block through Inductor", ("inductor",)),
    make_case("numerics/set_order", "Sums a set of strings in its order", ("dynamo",)),
)

CELLS = tuple(
    dataclasses.replace(cell, order=order)
    for order, cell in enumerate(
        (
            make_cell("3.10-2.0", "2.0.1"),
            make_cell("3.11-2.0", "2.0.1"),
            make_cell("3.11-2.1", "2.1.2"),
            make_cell("3.12-2.3", "2.3.1"),
            make_cell("3.12-2.4", "2.4.1"),
            make_unmeasured(
                "3.12-2.4-cuda",
                "2.4.1",
                NotRunReason.NO_DEVICE,
                "nvidia-smi lists no device",
                device="cuda",
            ),
            make_cell("3.13-2.5", "2.5.1"),
            make_cell("3.13-2.6", "2.6.0"),
            make_unmeasured(
                "3.13-2.8",
                "2.8.0",
                NotRunReason.ENVIRONMENT_FAILED,
                "uv could not resolve torch==2.8.0",
                evidence="error: Request failed after 3 retries\n  Caused by: connection reset",
            ),
            make_cell("3.13-2.15", "2.15.0"),
            make_unmeasured(
                "3.14-2.9", "2.9.1", NotRunReason.NO_INTERPRETER, "no Python 3.14 was found"
            ),
        )
    )
)


def _realistic_result(cell: CellRecord, case: str, path: str) -> Result:
    """What the realistic set says of one probe: roughly what these releases do."""
    id = cell.id
    if id in REFUSALS and path != "jit-trace":
        return make_refusal(id, case, path)
    newest = id == "3.13-2.15"
    match case:
        case "autograd/double_backward":
            message = "torch.compile with aot_autograd does not currently support double backward"
            return make_result(
                id,
                case,
                path,
                Verdict.ERROR,
                cause=Cause.FEATURE_UNSUPPORTED,
                message=f"RuntimeError: {message}",
                raised=(Raised(type="builtins.RuntimeError", message=message),),
                graphs=1,
                ops=3,
            )
        case "bytecode/except_star" if id == "3.10-2.0":
            return make_result(id, case, path, Verdict.UNAVAILABLE, message="needs Python >=3.11")
        case "bytecode/except_star":
            return make_result(
                id,
                case,
                path,
                Verdict.UNCOMPILED,
                cause=Cause.GRAPH_BREAK,
                breaks=(GraphBreak(reason="missing: CHECK_EG_MATCH", file=case, line=22),),
            )
        case "bytecode/listcomp_break" if id in ("3.12-2.4", "3.13-2.6"):
            is_new = id == "3.13-2.6" and path == "inductor"
            return make_result(
                id,
                case,
                path,
                Verdict.WRONG,
                cause=Cause.WRONG_RESULT,
                standing=Standing.WORSE if is_new else Standing.EXPECTED,
                expected=Verdict.FULL if is_new else None,
                message="output differs from eager",
                difference="output[0]: 3 items in eager, 1 when compiled\n  eager    [0, 1, 2]\n  compiled [0]",
                graphs=1,
                ops=1,
            )
        case "bytecode/match_class" if not newest:
            return make_result(
                id, case, path, Verdict.PARTIAL, graphs=2, ops=4, breaks=(MATCH_BREAK, MATCH_BREAK)
            )
        case "bytecode/match_class":
            return make_result(
                id, case, path, standing=Standing.BETTER, expected=Verdict.PARTIAL, graphs=1, ops=4
            )
        case "claims/suppress_errors":
            return make_result(
                id,
                case,
                path,
                Verdict.UNCOMPILED,
                cause=Cause.BACKEND_FAILED,
                message="fell back to eager",
            )
        case "environment/no_cxx":
            text = "No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, 'g++')"
            kind = "torch._inductor.exc.InvalidCxxCompiler"
            is_changed = id == "3.10-2.0"
            return make_result(
                id,
                case,
                path,
                Verdict.ERROR,
                cause=Cause.CXX_COMPILER_MISSING,
                standing=Standing.CHANGED if is_changed else Standing.EXPECTED,
                expected=Verdict.ERROR if is_changed else None,
                expected_cause=Cause.BACKEND_FAILED if is_changed else None,
                message=f"InvalidCxxCompiler: {text}",
                raised=(
                    Raised(
                        type="torch._dynamo.exc.BackendCompilerFailed",
                        message=f"backend='inductor' raised:\nInvalidCxxCompiler: {text}",
                    ),
                    Raised(
                        type=kind,
                        message=text,
                        frame="torch/_inductor/codecache.py:612 in cpp_compiler",
                    ),
                ),
                isolation="process",
                seconds=8.7654,
            )
        case "models/attention" if id == "3.10-2.0":
            return make_result(
                id,
                case,
                path,
                Verdict.CRASH,
                cause=Cause.CRASH,
                standing=Standing.NEW,
                signal="SIGSEGV",
                output="Fatal Python error: Segmentation fault\n\nCurrent thread (most recent call first):\n"
                '  File "models/attention", line 40 in run',
            )
        case "models/attention" if id == "3.11-2.1":
            return make_result(
                id,
                case,
                path,
                Verdict.TIMEOUT,
                cause=Cause.TIMEOUT,
                message="ended after 120 s",
                seconds=120.0,
            )
        case "models/attention" if id == "3.12-2.4":
            return make_result(
                id,
                case,
                path,
                Verdict.OUT_OF_MEMORY,
                cause=Cause.OUT_OF_MEMORY,
                message="used more than 4.0 GB",
                peak_bytes=4_294_967_296,
            )
        case "numerics/set_order":
            return make_result(
                id,
                case,
                path,
                Verdict.INVALID,
                cause=Cause.EAGER_FAILED,
                message="two eager runs differ",
            )
        case _:
            return make_result(id, case, path)


def make_realistic() -> Findings:
    """The boundary of support as the quick profile sees it, with every verdict and every standing."""
    results: list[Result] = []
    for cell in CELLS:
        for case in CASES:
            for path in case.paths:
                if cell.id == "3.12-2.4-cuda":
                    reason = NotRunReason.NO_DEVICE
                    results.append(
                        make_result(cell.id, case.id, path, Verdict.NOT_RUN, not_run=reason)
                    )
                elif cell.status == "measured":
                    results.append(_realistic_result(cell, case.id, path))
    return Findings(
        cells=CELLS,
        cases=CASES,
        results=tuple(results),
        machines=(MACHINE,),
        generated="2026-12-01T04:00:00Z",
    )


NASTY = (
    "\x1b[31mred\x1b[0m \x00NUL ]]> <script>alert(1)</script> a|b `tick` ``` fence\n"
    "second line\r\n\ud83d half a pair \U0001f525 \u05e9\u05dc\u05d5\u05dd \u202etxet desrever\u202c "
    "@everyone #123 GH-7 &amp; %0A::error::x \ufffe \x9b1m \\| 'quoted' \"twice\" </details></table>"
)


def make_hostile() -> Findings:
    """Texts that break out, colour, reverse, or never end, in every place where a text can stand."""
    cell = make_cell(
        "3.12-2.4", "2.4.1", detail=NASTY, packages={"torch": "2.4.1", NASTY: NASTY}, index=NASTY
    )
    folded = make_unmeasured(
        "3.13-2.5", "2.5.1", NotRunReason.ENVIRONMENT_FAILED, NASTY, evidence=NASTY
    )
    case = make_case(
        "odd/a|b `c` <d>", NASTY, source=("javascript:alert(1)", NASTY), text=NASTY * 3
    )
    huge = make_case("odd/huge", "A message of one megabyte")
    seen: dict[str, Any] = {
        "message": NASTY,
        "raised": (Raised(type=NASTY, message=NASTY, frame=NASTY),),
        "breaks": (GraphBreak(reason=NASTY, code=NASTY, file=NASTY, line=3),),
        "difference": NASTY,
        "output": NASTY,
        "traceback": NASTY,
        "signal": NASTY,
    }
    long = "x" * 1_000_000
    results = (
        make_result(
            cell.id,
            case.id,
            "dynamo",
            Verdict.ERROR,
            cause=Cause.UNKNOWN,
            standing=Standing.NEW,
            **seen,
        ),
        make_result(cell.id, case.id, "aot", Verdict.ERROR, cause=Cause.UNKNOWN, **seen),
        make_result(cell.id, case.id, "inductor", Verdict.UNAVAILABLE, message=NASTY),
        make_result(
            cell.id,
            huge.id,
            "dynamo",
            Verdict.ERROR,
            cause=Cause.UNKNOWN,
            standing=Standing.NEW,
            message=long,
            raised=(Raised(type="builtins.ValueError", message=long),) * 3,
            output=long,
            traceback=long,
            difference=long,
            breaks=(GraphBreak(reason=long),) * 100,
        ),
    )
    machine = dataclasses.replace(MACHINE, facts={NASTY: NASTY})
    return Findings(
        cells=(cell, folded),
        cases=(case, huge),
        results=results,
        machines=(machine,),
        generated="2026-12-01T04:00:00Z",
    )


def make_nothing() -> Findings:
    """No cell, no case, no result, no machine."""
    return Findings(cells=(), cases=(), results=(), machines=(), generated="")


def make_unprobed() -> Findings:
    """Cells and cases, none of them probed: what must never look green."""
    cells = tuple(cell for cell in CELLS if cell.status == "not-run")
    return Findings(cells=cells, cases=CASES, results=(), machines=(MACHINE,), generated="")


def make_large(cases: int, cells: int, paths: tuple[str, ...] = MAIN_PATHS) -> Findings:
    """A matrix of that size in which every seventh mark does not work, with a message of its case."""
    some_cells = tuple(
        make_cell(f"3.{10 + number % 4}-2.{number // 4}", f"2.{number // 4}.0", order=number)
        for number in range(cells)
    )
    source = "def run(x):\n    return x.sin()\n" * 45
    some_cases = tuple(
        make_case(
            f"area{number % 12:02}/case_{number:03}", f"Program number {number}", paths, text=source
        )
        for number in range(cases)
    )
    results: list[Result] = []
    for place, cell in enumerate(some_cells):
        for number, case in enumerate(some_cases):
            for path in paths:
                if (place * 31 + number) % 7:
                    results.append(make_result(cell.id, case.id, path, ops=number % 5))
                    continue
                message = f"Unsupported: call_method number {number % 90} in {case.id}"
                results.append(
                    make_result(
                        cell.id,
                        case.id,
                        path,
                        Verdict.ERROR,
                        cause=Cause.GRAPH_BREAK,
                        message=message,
                        raised=(
                            Raised(
                                type="torch._dynamo.exc.Unsupported",
                                message=f"{message}\n\nfrom user code:\n  {case.id}, line {place}",
                            ),
                        ),
                        breaks=(GraphBreak(reason=message, file=case.id, line=number),),
                        output=f"line {number}\n" * 20,
                    )
                )
    return Findings(
        cells=some_cells,
        cases=some_cases,
        results=tuple(results),
        machines=(MACHINE,),
        generated="2026-12-01T04:00:00Z",
    )
