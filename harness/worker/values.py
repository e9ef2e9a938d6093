"""What a run left behind, as a tree of plain values, and what differs between two such trees.

The tree is a copy: later writes to the tensors do not reach it. Floats that differ are not judged here;
they are handed to `referee`, which asks a float64 run who is right.
"""

from __future__ import annotations

import cmath
import math
import re
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_DEPTH = 12


@dataclass(frozen=True)
class Node:
    """One value. kind: what it is (type or container name). value: a plain value or a detached CPU
    tensor for a leaf, a tuple of (key, Node) for a container."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Difference:
    """One place at which two trees differ. want, got: tensors where only floats differ, else None."""

    where: str
    text: str
    want: torch.Tensor | None = None
    got: torch.Tensor | None = None


def snapshot(value: Any, home: str = "") -> Node:
    """Copies `value` into a tree. home: name of the module whose own classes are looked into."""
    return _snapshot(value, home, 0, {})


def _snapshot(value: Any, home: str, depth: int, seen: dict[int, str]) -> Node:
    if value is None or isinstance(value, (bool, int, str, bytes, complex)):
        return Node(type(value).__name__, value)
    if isinstance(value, float):
        return Node("float", value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch.dtype, torch.device, torch.Size, range, slice)):
        return Node(type(value).__name__, repr(value))
    if depth > _MAX_DEPTH:
        return Node("deep", type(value).__name__)
    if id(value) in seen:
        return Node("again", seen[id(value)])
    seen = {**seen, id(value): f"level {depth}"}

    def below(inner: Any) -> Node:
        return _snapshot(inner, home, depth + 1, seen)

    if isinstance(value, dict):
        pairs = tuple((f"[{_repr(key)}]", below(item)) for key, item in value.items())
        return Node(_type_name(value), pairs)
    if isinstance(value, (set, frozenset)):
        return Node(_type_name(value), tuple(sorted(map(_repr, value))))
    if isinstance(value, (list, tuple)) or _type_name(value) == "deque":
        return Node(_type_name(value), tuple((f"[{i}]", below(v)) for i, v in enumerate(value)))
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if type(value).__module__ == "numpy":
        return Node(f"numpy {getattr(value, 'dtype', '')}", _numpy_tensor(value))
    if isinstance(value, FunctionType) and value.__module__ == home:
        return _function(value, below)
    if isinstance(value, type) and value.__module__ == home:
        attributes = {k: v for k, v in vars(value).items() if _is_data(k, v)}
        return Node(
            f"class {value.__qualname__}", tuple((f".{k}", below(v)) for k, v in attributes.items())
        )
    if type(value).__module__ == home:
        return Node(
            type(value).__qualname__, tuple((f".{k}", below(v)) for k, v in _attributes(value))
        )
    return Node("opaque", type(value).__qualname__)


def _repr(value: Any) -> str:
    """Without the address that the default representation ends in: a case is loaded afresh each time."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _type_name(value: Any) -> str:
    return type(value).__name__


def _is_data(name: str, value: Any) -> bool:
    return not name.startswith("__") and not isinstance(
        value, (FunctionType, staticmethod, classmethod, property, ModuleType)
    )


def _attributes(value: Any) -> list[tuple[str, Any]]:
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        for name in getattr(base, "__slots__", ()):
            if hasattr(value, name):
                found[name] = getattr(value, name)
    return list(found.items())


def _tensor(value: torch.Tensor) -> Node:
    try:
        plain = value.detach()
        if plain.layout is not torch.strided:
            plain = plain.to_dense()
        copy = plain.resolve_conj().resolve_neg().cpu().clone()
    except Exception as error:  # a subclass that forbids it: its kind and shape are compared
        return Node(
            f"{_type_name(value)} {tuple(value.shape)}", f"not copied: {type(error).__name__}"
        )
    return Node(f"tensor {str(value.dtype).replace('torch.', '')} {tuple(value.shape)}", copy)


def _numpy_tensor(value: Any) -> Any:
    try:
        return torch.tensor(value.tolist())
    except Exception:
        return repr(value)


def _module(value: torch.nn.Module) -> Node:
    parts: list[tuple[str, Node]] = [(".training", Node("bool", value.training))]
    for name, parameter in value.named_parameters():
        parts.append((f".{name}", _tensor(parameter)))
        if parameter.grad is not None:
            parts.append((f".{name}.grad", _tensor(parameter.grad)))
    parts.extend((f".{name}", _tensor(buffer)) for name, buffer in value.named_buffers())
    for name, item in vars(value).items():
        is_own = not name.startswith("_") and name != "training" and _is_data(name, item)
        if is_own and not isinstance(item, (torch.nn.Module, torch.Tensor)):
            parts.append((f".{name}", _snapshot(item, "", _MAX_DEPTH - 3, {})))
    return Node(f"module {_type_name(value)}", tuple(parts))


def _function(value: FunctionType, below: Callable[[Any], Node]) -> Node:
    # Dynamo marks functions that it knows with attributes of its own.
    own = {k: v for k, v in vars(value).items() if k != "__wrapped__" and "_torch" not in k}
    parts = [(f".{k}", below(v)) for k, v in own.items()]
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
        try:
            parts.append((f" closing over {name}", below(cell.cell_contents)))
        except ValueError:  # an empty cell
            parts.append((f" closing over {name}", Node("empty", None)))
    return Node(f"function {value.__qualname__}", tuple(parts))


def module_state(module: ModuleType) -> Node:
    """The data in a case's globals: what its side effects can be seen by."""
    parts = []
    for name, value in vars(module).items():
        if name.startswith("__") or isinstance(value, ModuleType):
            continue
        is_foreign = getattr(value, "__module__", module.__name__) != module.__name__
        if is_foreign and callable(value) and not isinstance(value, torch.nn.Module):
            continue  # imported functions and classes
        parts.append((name, snapshot(value, module.__name__)))
    return Node("module globals", tuple(parts))


def compare(want: Node, got: Node, where: str = "") -> list[Difference]:
    """All places at which `got` differs from `want`; empty when nothing does."""
    if want.kind != got.kind:
        return [Difference(where, f"{where}: eager {_show(want)}, compiled {_show(got)}")]
    if isinstance(want.value, torch.Tensor) and isinstance(got.value, torch.Tensor):
        return _compare_tensors(want.value, got.value, where)
    if isinstance(want.value, float) and isinstance(got.value, float):
        return _compare_tensors(torch.tensor(want.value), torch.tensor(got.value), where)
    if _is_branch(want) and _is_branch(got):
        keys, other = [key for key, _ in want.value], [key for key, _ in got.value]
        if keys != other:
            return [Difference(where, f"{where}: eager has {_keys(keys)}, compiled {_keys(other)}")]
        return [
            found
            for (key, left), (_, right) in zip(want.value, got.value, strict=False)
            for found in compare(left, right, where + key)
        ]
    if want.value != got.value and not (_is_nan(want.value) and _is_nan(got.value)):
        return [Difference(where, f"{where}: eager {_show(want)}, compiled {_show(got)}")]
    return []


def find(tree: Node, where: str, prefix: str = "") -> Node | None:
    """The leaf that `compare` names `where`, in another tree of the same shape."""
    if prefix == where:
        return tree
    if _is_branch(tree):
        for key, inner in tree.value:
            if where.startswith(prefix + key):
                found = find(inner, where, prefix + key)
                if found is not None:
                    return found
    return None


def _is_branch(node: Node) -> bool:
    value = node.value
    return isinstance(value, tuple) and all(
        isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Node) for item in value
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, complex)) and cmath.isnan(value)


def _keys(keys: list[str]) -> str:
    return (", ".join(keys[:12]) or "nothing") + (" …" if len(keys) > 12 else "")


def _show(node: Node) -> str:
    if isinstance(node.value, torch.Tensor):
        flat = node.value.reshape(-1)[:6].tolist()
        return f"{node.kind} {flat}{' …' if node.value.numel() > 6 else ''}"
    if _is_branch(node):
        return f"{node.kind} of {len(node.value)}"
    text = repr(node.value)
    return text if len(text) <= 200 else text[:200] + " …"


_TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
"""Relative and absolute, by dtype: torch.testing.assert_close's own defaults (PyTorch documentation)."""


def _compare_tensors(want: torch.Tensor, got: torch.Tensor, where: str) -> list[Difference]:
    if want.numel() == 0:
        return []
    if want.dtype not in _TOLERANCES and not (want.is_floating_point() or want.is_complex()):
        if torch.equal(want, got):
            return []
        return [Difference(where, f"{where}: {_describe(want, got)}")]
    relative, absolute = _TOLERANCES.get(want.dtype, (1e-1, 1e-1))  # float8 and the like
    exact, seen = _widen(want), _widen(got)
    if torch.allclose(seen, exact, rtol=relative, atol=absolute, equal_nan=True):
        return []
    return [Difference(where, f"{where}: {_describe(exact, seen)}", want, got)]


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _describe(want: torch.Tensor, got: torch.Tensor) -> str:
    differ = ~((want == got) | (want.isnan() & got.isnan()))
    count, first = int(differ.sum()), int(differ.reshape(-1).nonzero()[0])
    left, right = want.reshape(-1)[first].item(), got.reshape(-1)[first].item()
    return f"{count} of {want.numel()} elements differ, the first: eager {left}, compiled {right}"


def referee(difference: Difference, exact: torch.Tensor | None) -> str:
    """Whether a float difference is wrong, or only another order of arithmetic.

    exact: the same value from an eager float64 run, or None where there is none.
    Returns "" when compiled is as near to it as eager is (root mean square; twice as far is allowed,
    three times for small or half-precision tensors), else a sentence. The rule is the one by which
    PyTorch's own benchmarks judge accuracy (benchmarks/dynamo, `same`), restated.
    """
    want, got = difference.want, difference.got
    if want is None or got is None:
        return difference.text
    eager, compiled = _widen(want), _widen(got)
    is_half = want.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128)
    tolerance = 1e-2 if is_half else 1e-4
    scale = max(1.0, _rms(eager))
    if exact is not None and exact.shape == want.shape:
        reference = _widen(exact)
        finite = torch.isfinite(reference.abs()) & torch.isfinite(eager.abs())
        if bool((torch.isfinite(compiled.abs()) != torch.isfinite(eager.abs())).any()):
            return f"{difference.text} (one is finite where the other is not)"
        eager_error = _rms((eager - reference)[finite])
        compiled_error = _rms((compiled - reference)[finite])
        # A float64 run that is far from eager computed something else (other random numbers, a branch).
        if eager_error <= 100 * tolerance * scale:
            factor = 3.0 if is_half or want.numel() < 1000 else 2.0
            if compiled_error <= factor * eager_error + tolerance * scale / 10:
                return ""
            return (
                f"{difference.text} (distance to a float64 run: eager {eager_error:.3g},"
                f" compiled {compiled_error:.3g})"
            )
    if torch.allclose(compiled, eager, rtol=10 * tolerance, atol=10 * tolerance, equal_nan=True):
        return ""
    return f"{difference.text} (no float64 run to compare with)"


def _rms(values: torch.Tensor) -> float:
    if values.numel() == 0:
        return 0.0
    found = values.abs().to(torch.float64).pow(2).mean().sqrt().item()
    return found if math.isfinite(found) else math.inf
