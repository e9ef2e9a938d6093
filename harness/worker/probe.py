"""One probe: a case, on a path, in this very process. What was seen comes back as a plain dictionary.

torch is not imported before the case has imported it: a case may take away a compiler, a package or a
folder first, as its user would.
"""

from __future__ import annotations

import re
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from harness.worker import loading, texts
from harness.worker.observe import RECORD
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MESSAGE_LIMIT = 20_000
_TRACEBACK_LIMIT = 20_000
_LIMITS = {"message": 1_000, "difference": 2_000}

Seen = dict[str, Any]
"""Fields of harness.results.Observation that a probe fills, as JSON takes them."""


def examine(request: dict[str, Any]) -> Seen:
    """Runs one probe to its verdict.

    request: `case` (id), `file`, `kind` (`run`, `check` or `script`), `path`. Never raises for what a
    case does; only the process itself can end before this returns.
    """
    started = time.perf_counter()
    kinds = {"run": _examine_run, "check": _examine_check, "script": _examine_script}
    try:
        seen = kinds[request["kind"]](request["file"], request["path"])
    except _Settled as settled:
        seen = settled.seen
    return finish(seen, request, time.perf_counter() - started)


def finish(seen: Seen, request: dict[str, Any], seconds: float) -> Seen:
    """Adds what was observed of Dynamo and of the process to a verdict."""
    breaks = [
        {"reason": found.reason, "code": found.code, "file": _short(found.file), "line": found.line}
        if found.file != request["file"]
        else {**vars(found), "file": f"{request['case']}.py"}
        for found in RECORD.breaks[:50]
    ]
    counted = {"graphs": RECORD.graphs, "ops": RECORD.ops, "recompiles": RECORD.recompiles}
    cut = {k: seen[k][:limit] for k, limit in _LIMITS.items() if k in seen}
    whole = {
        **seen,
        **cut,
        **counted,
        "breaks": breaks,
        "seconds": round(seconds, 4),
        "peak_bytes": _peak_bytes(),
    }
    cleaned: Seen = texts.clean(whole, texts.cleaner(request))
    return cleaned


class _Settled(Exception):
    """The verdict is known; nothing further is to be run."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen


def _examine_run(file: str, path: str) -> Seen:
    try:
        loading.load_case(file)
        from harness.worker import oracle  # imports torch: after the case has done so

        first = oracle.execute(file, _eager)
        again = oracle.execute(file, _eager)
    except BaseException as error:
        raise _Settled(_eager_failed(error, file)) from error
    unstable = oracle.disagreements(first, again)
    if unstable:
        text = (
            f"two eager runs differ, so nothing can be said of compiled: {unstable[0].text.strip()}"
        )
        return {"verdict": "invalid", "message": text, "difference": unstable[0].text.strip()}
    RECORD.clear()
    try:
        compiled = oracle.execute(file, _transform(path))
    except BaseException as error:
        return _failed(error)
    found = oracle.disagreements(first, compiled)
    difference = oracle.verdict_on(found, file, _eager) if found else ""
    if difference:
        return {"verdict": "wrong", "message": difference, "difference": difference}
    return _worked()


def _examine_check(file: str, path: str) -> Seen:
    try:
        module = loading.load_case(file)
    except BaseException as error:
        raise _Settled(_eager_failed(error, file)) from error
    RECORD.clear()
    try:
        module.check(_bound(path))
    except BaseException as error:
        return _judged_by_case(error, file)
    return _worked()


def _examine_script(file: str, _path: str) -> Seen:
    try:
        status = loading.run_script(file)
    except BaseException as error:
        return _judged_by_case(error, file)
    return left_with(status)


def left_with(status: int) -> Seen:
    """The verdict on a plain script by the status it leaves with."""
    if status:
        return {"verdict": "error", "message": f"exit status {status}", "exit_status": status}
    return {**_worked(), "exit_status": 0}


def _eager(run: Callable[..., Any], _arguments: tuple[Any, ...]) -> Callable[..., Any]:
    return run


def _transform(path: str) -> Callable[[Callable[..., Any], tuple[Any, ...]], Callable[..., Any]]:
    import torch

    def compiled(run: Callable[..., Any], _arguments: tuple[Any, ...]) -> Callable[..., Any]:
        function: Callable[..., Any] = torch.compile(run, **PATHS[path])
        return function

    def traced(run: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
        traced_function = torch.jit.trace(run, arguments, check_trace=False)
        RECORD.graphs += 1
        RECORD.ops += len(list(traced_function.graph.nodes()))
        function: Callable[..., Any] = traced_function
        return function

    return traced if path == "jit-trace" else compiled


def _bound(path: str) -> Callable[..., Any]:
    """`torch.compile` with the path's arguments; what a case passes itself comes on top."""
    import torch

    def compile(function: Any = None, **more: Any) -> Any:
        chosen = dict(PATHS[path])
        chosen.update(more)
        if function is None:
            return lambda decorated: torch.compile(decorated, **chosen)
        return torch.compile(function, **chosen)

    return compile


def _worked() -> Seen:
    if RECORD.graphs == 0:
        reasons = [found.reason for found in RECORD.breaks] + RECORD.skipped
        why = f": {reasons[0]}" if reasons else ""
        return {"verdict": "uncompiled", "message": f"no graph was captured{why}"}
    if RECORD.breaks:
        count = len(RECORD.breaks)
        text = f"{count} graph break{'s' if count > 1 else ''}: {RECORD.breaks[0].reason}"
        return {"verdict": "partial", "message": text}
    return {"verdict": "full", "message": ""}


def _judged_by_case(error: BaseException, file: str) -> Seen:
    """A case that asserts for itself: its own AssertionError says `wrong`, all else is an error."""
    missing = loading.missing_here(error, file)
    if missing:
        return {"verdict": "unavailable", "message": missing}
    if isinstance(error, AssertionError) and _is_own_assertion(error, file):
        text = texts.text_of(error).strip() or f"assertion failed: {_asserting_line(error, file)}"
        return {
            **_failed(error),
            "verdict": "wrong",
            "message": texts.headline(text),
            "difference": text[:2000],
        }
    return _failed(error)


def _eager_failed(error: BaseException, file: str) -> Seen:
    missing = loading.missing_here(error, file)
    if missing:
        return {"verdict": "unavailable", "message": missing}
    failed = _failed(error)
    if failed["verdict"] == "error" and _is_import_of_torch(error):
        return failed  # torch itself cannot be imported: nothing was asked of the case yet
    if failed["verdict"] == "error":
        failed.update(verdict="invalid", message=f"eager fails: {failed['message']}")
    return failed


def _is_import_of_torch(error: BaseException) -> bool:
    """Whether torch was being imported, and did not come up."""
    frames = traceback.extract_tb(error.__traceback__)
    is_importing = any(
        re.search(r"[/\\]torch[/\\]__init__\.py$", frame.filename) for frame in frames
    )
    return is_importing and not hasattr(sys.modules.get("torch"), "compile")


def _failed(error: BaseException) -> Seen:
    chain = list(_chain(error))
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if len(text) > _TRACEBACK_LIMIT:
        text = "[cut]\n" + text[-_TRACEBACK_LIMIT:]
    is_memory = any(_is_out_of_memory(one) for one in chain)
    return {
        "verdict": "out-of-memory" if is_memory else "error",
        "message": _headline_of(chain),
        "raised": [_raised(one) for one in chain[:10]],
        "traceback": text,
    }


def _headline_of(chain: list[BaseException]) -> str:
    """The outermost text there is; a wrapper without one (2.0 has some) leaves it to what it wraps."""
    for error in chain:
        text = texts.headline(texts.text_of(error))
        if text:
            # `KeyError('512')` says nothing without its name.
            is_telling = error is chain[0] and " " in text
            return text if is_telling else f"{type(error).__name__}: {text}"
    return type(chain[-1]).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it was raised from or while, as Python would print them."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )


def _raised(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    frame = (
        f"{_short(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    )
    bases = [_qualified(base) for base in type(error).__mro__[1:-1]]
    return {
        "type": _qualified(type(error)),
        "message": texts.text_of(error)[:_MESSAGE_LIMIT],
        "bases": bases,
        "frame": frame,
    }


def _qualified(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _is_out_of_memory(error: BaseException) -> bool:
    text = texts.text_of(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "DefaultCPUAllocator: can't allocate memory" in text
        or "CUDA out of memory" in text
    )


def _is_own_assertion(error: AssertionError, file: str) -> bool:
    """Whether the case asserted (itself, or through torch.testing), and not torch about itself."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not re.search(r"[/\\]torch[/\\]testing[/\\]", frame.filename):
            return frame.filename == file
    return False


def _asserting_line(error: AssertionError, file: str) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return (frames[-1].line or "") if frames else ""


def _short(file: str) -> str:
    """A path without the machine in it: from `site-packages` or the standard library on."""
    for above in (r"site-packages", r"lib[/\\]python3\.\d+"):
        found = re.search(above + r"[/\\](.+)$", file)
        if found:
            return found.group(1).replace("\\", "/")
    return re.split(r"[/\\]", file)[-1]


def _peak_bytes() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
