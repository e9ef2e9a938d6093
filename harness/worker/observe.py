"""Watches Dynamo at work: which graphs were compiled, where they broke, and which frames fell back.

torch has no public account of this that is the same from 2.0 to 2.15, and its own counters count a graph
before the backend has compiled it, so that a suppressed failure looks like success. Three functions are
therefore wrapped when their modules are imported; each calls the original and changes nothing:

* `OutputGraph.call_user_compiler`: a graph went to a backend, and came back compiled;
* `OutputGraph.compile_subgraph`: its `reason` says why a graph ended (torch._dynamo.output_graph);
* `convert_frame._compile`: a frame was given up, with the exception that says why.

All three stand under these names in every release from 2.0.0 to 2.15.0 (read from the wheels).
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from harness.worker.texts import headline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CODE_IN_URL = re.compile(r"/gb/(gb\d+)\.html", re.IGNORECASE)


@dataclass
class Break:
    """A place where a graph ended before its function did. line: 1-based, 0 where torch names none."""

    reason: str
    code: str
    file: str
    line: int


@dataclass
class Record:
    """What has been seen since the last `clear`."""

    graphs: int = 0
    ops: int = 0
    recompiles: int = 0
    breaks: list[Break] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    compiled_code: list[CodeType] = field(default_factory=list)
    frames: list[CodeType] = field(default_factory=list)

    def clear(self) -> None:
        """Forgets everything; called in a new child, and between eager and compiled."""
        self.__init__()  # type: ignore[misc]

    def note_graph(self, graph_module: Any) -> None:
        ops = sum(1 for node in graph_module.graph.nodes if node.op.startswith("call_"))
        if not ops:  # torch 2.0 sends even an empty graph to the backend
            return
        self.graphs += 1
        self.ops += ops
        if self.frames:
            code = self.frames[-1]
            # Identity, not equality: two functions of one text are two functions.
            if any(code is seen for seen in self.compiled_code):
                self.recompiles += 1
            else:
                self.compiled_code.append(code)

    def note_break(self, reason: str, stack: Sequence[Any]) -> None:
        text, code = headline(reason), _graph_break_code(reason)
        last = stack[-1] if stack else None
        found = Break(text, code, last.filename if last else "", (last.lineno or 0) if last else 0)
        if found not in self.breaks:  # a frame is traced again after a break: the same place twice
            self.breaks.append(found)


RECORD = Record()


def install() -> None:
    """Watches Dynamo's modules, now or as soon as something imports them. Imports nothing itself."""
    for name, watch in _WATCHES.items():
        if name in sys.modules:
            watch(sys.modules[name])
    sys.meta_path.insert(0, _Finder())


def _graph_break_code(text: str) -> str:
    found = _CODE_IN_URL.search(text)
    return found.group(1).upper() if found else ""


def _stack_of(error: BaseException) -> list[Any]:
    """The user's frames at the point of the error, innermost last."""
    stack = list(getattr(error, "real_stack", None) or [])
    # 2.0 collects them from the inside out while the exception rises; later releases record them whole.
    return list(reversed(stack)) if _is_torch_2_0() else stack


def _is_torch_2_0() -> bool:
    torch = sys.modules["torch"]
    return bool(torch.__version__.startswith("2.0."))


def _watch_output_graph(module: ModuleType) -> None:
    graph = module.OutputGraph
    call_user_compiler = graph.call_user_compiler
    compile_subgraph = graph.compile_subgraph

    @functools.wraps(call_user_compiler)
    def watched_call(self: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = call_user_compiler(self, gm, *args, **kwargs)
        RECORD.note_graph(gm)
        return compiled

    @functools.wraps(compile_subgraph)
    def watched_subgraph(self: Any, *args: Any, **kwargs: Any) -> Any:
        reason: Any = kwargs.get("reason")
        for value in args:
            if type(value).__name__ == "GraphCompileReason":
                reason = value
        ended = compile_subgraph(self, *args, **kwargs)
        if _is_break(reason):
            RECORD.note_break(reason.reason, reason.user_stack)
        return ended

    graph.call_user_compiler = watched_call
    graph.compile_subgraph = watched_subgraph


def _is_break(reason: Any) -> bool:
    """Whether a graph ended early; 2.0 marks the end of a function by the text alone."""
    if reason is None or reason.reason == "return_value":
        return False
    return bool(getattr(reason, "graph_break", True))


def _watch_convert_frame(module: Any) -> None:
    compile_frame = module._compile

    @functools.wraps(compile_frame)
    def watched(code: CodeType, *args: Any, **kwargs: Any) -> Any:
        RECORD.frames.append(code)
        try:
            return compile_frame(code, *args, **kwargs)
        except Exception as error:
            _note_given_up(error)
            raise
        finally:
            RECORD.frames.pop()

    module._compile = watched


def _note_given_up(error: Exception) -> None:
    """A frame will run uncompiled (or, under fullgraph, the caller will see this very exception)."""
    names = {base.__name__ for base in type(error).__mro__}
    if "SkipFrame" in names:
        inner = error.__cause__ or error.__context__
        if inner is None or "Unsupported" not in {base.__name__ for base in type(inner).__mro__}:
            RECORD.skipped.append(headline(str(error)))
            return
        error = inner if isinstance(inner, Exception) else error
    inner = error.__cause__ or error.__context__
    # 2.0 raises some wrappers without a text of their own.
    reason = headline(str(error)) or (headline(str(inner)) if inner else "")
    RECORD.note_break(reason or type(inner or error).__name__, _stack_of(error))


_WATCHES: dict[str, Callable[[ModuleType], None]] = {
    "torch._dynamo.output_graph": _watch_output_graph,
    "torch._dynamo.convert_frame": _watch_convert_frame,
}


class _Loader(importlib.abc.Loader):
    """Runs a module with its own loader, then hands it to its watch."""

    def __init__(self, inner: importlib.abc.Loader, watch: Callable[[ModuleType], None]) -> None:
        self._inner = inner
        self._watch = watch

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        self._watch(module)

    def __getattr__(self, name: str) -> Any:  # get_source, get_data, is_package …
        return getattr(self._inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _WATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, _WATCHES[fullname])
        return spec
