"""Runs a `run` + `inputs` case once, and says whether compiled did what eager does."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from harness.worker import loading, values

SEED = 0

Transform = Callable[[Callable[..., Any], tuple[Any, ...]], Callable[..., Any]]
"""From the case's function and its first arguments to what is called: eager, or compiled."""


class MalformedCase(Exception):
    """The case does not do what the format asks of it; the text says what."""


@dataclass(frozen=True)
class Execution:
    """What one execution of a case left behind; every part is a copy."""

    calls: values.Node
    state: values.Node
    printed: str

    def tree(self) -> values.Node:
        parts = (
            ("call", self.calls),
            ("global ", self.state),
            ("printed text", values.Node("str", self.printed)),
        )
        return values.Node("execution", parts)


def execute(file: str, transform: Transform, *, exact: bool = False) -> Execution:
    """Loads the case afresh, calls it on each of its inputs, and goes backward where it can.

    exact: in float64, for a referee. Raises what the case raises, and MalformedCase.
    """
    printed = _Printed()
    try:
        with contextlib.redirect_stdout(printed):
            seed()
            with _default_device():
                module = loading.load_case(file)
                seed()
                calls = _argument_tuples(module)
            if exact:
                calls = [tuple(_to_float64(value) for value in call) for call in calls]
                _widen_globals(module)
            with _default_dtype(torch.float64 if exact else torch.get_default_dtype()):
                run = transform(module.run, calls[0])
                done = [_call(run, call, module) for call in calls]
    finally:
        text = printed.getvalue()
        with contextlib.suppress(OSError, ValueError):  # the case closed it, or no text of its own
            sys.stdout.write(text)
    sequence = tuple((f"[{i}]", node) for i, node in enumerate(done))
    return Execution(values.Node("calls", sequence), values.module_state(module), text)


class _Printed(io.StringIO):
    """What a case prints, kept even where it closes its stdout."""

    def close(self) -> None:
        """Nothing."""


def seed() -> None:
    """Every random number that follows is the same in each execution."""
    random.seed(SEED)
    torch.manual_seed(SEED)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(SEED)


def disagreements(want: Execution, got: Execution) -> list[values.Difference]:
    """All that differs, before anyone asks whether it matters."""
    return values.compare(want.tree(), got.tree())


def verdict_on(differences: list[values.Difference], file: str, eager: Transform) -> str:
    """Empty when every difference is only rounding, else the first that is not, as a sentence."""
    serious = next((found for found in differences if found.want is None), None)
    if serious is not None:
        return serious.text.strip()
    tree: values.Node | None
    try:
        tree = execute(file, eager, exact=True).tree()
    except (
        Exception
    ):  # a case whose dtypes do not bend has no float64 run; `referee` says what follows
        tree = None
    for found in differences:
        leaf = values.find(tree, found.where) if tree is not None else None
        exact = leaf.value if leaf is not None else None
        if isinstance(exact, float):
            exact = torch.tensor(exact, dtype=torch.float64)
        text = values.referee(found, exact if isinstance(exact, torch.Tensor) else None)
        if text:
            return text.strip()
    return ""


def _argument_tuples(module: ModuleType) -> list[tuple[Any, ...]]:
    if not callable(getattr(module, "run", None)) or not callable(getattr(module, "inputs", None)):
        msg = "run and inputs must both be callable"
        raise MalformedCase(msg)
    given = module.inputs()
    calls = given if isinstance(given, list) else [given]
    if not calls or not all(isinstance(call, tuple) for call in calls):
        msg = "inputs() must return a tuple of arguments, or a list of such tuples"
        raise MalformedCase(msg)
    return calls


def _call(run: Callable[..., Any], arguments: tuple[Any, ...], module: ModuleType) -> values.Node:
    seed()
    output = run(*arguments)
    returned = values.snapshot(output, module.__name__)
    _backward(output)
    gradients = tuple(
        (f" gradient of argument tensor {i}", values.snapshot(tensor.grad))
        for i, tensor in enumerate(_tensors(arguments))
        if tensor.is_leaf and tensor.grad is not None
    )
    after = values.snapshot(arguments, module.__name__)
    return values.Node(
        "call", ((" returns", returned), (" leaves its arguments", after), *gradients)
    )


def _backward(output: Any) -> None:
    losses = [
        (tensor.abs() if tensor.is_complex() else tensor).sum()
        for tensor in _tensors(output)
        if tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
    ]
    if losses:
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        total.backward()


def _tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 8 and isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif depth < 8 and isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, depth + 1)


def _to_float64(value: Any) -> Any:
    if isinstance(value, torch.nn.Module):
        return value.double()
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point() and not value.is_complex():
            return value
        wide = torch.complex128 if value.is_complex() else torch.float64
        return value.detach().to(wide).requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(_to_float64(item) for item in value)
    if type(value) is dict:
        return {key: _to_float64(item) for key, item in value.items()}
    return value


def _widen_globals(module: ModuleType) -> None:
    for name, value in list(vars(module).items()):
        if not name.startswith("__") and not isinstance(value, ModuleType):
            vars(module)[name] = _to_float64(value)


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def _default_device() -> Iterator[None]:
    """While a case makes its inputs, they are made on the cell's device; while it runs, nothing is changed."""
    device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")
    if device == "cpu":
        yield
        return
    with torch.device(device):
        yield
