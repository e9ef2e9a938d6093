"""The compile paths: what each name passes to `torch.compile`."""

from __future__ import annotations

from typing import Any

PATHS: dict[str, dict[str, Any]] = {
    "dynamo": {"backend": "eager"},
    "aot": {"backend": "aot_eager"},
    "inductor": {"backend": "inductor"},
    "inductor-dynamic": {"backend": "inductor", "dynamic": True},
    "inductor-cudagraphs": {"backend": "inductor", "mode": "reduce-overhead"},
    "jit-trace": {},
    "script": {},
}
"""Path name → keyword arguments of `torch.compile`.

`jit-trace` is `torch.jit.trace` instead, for contrast; `script` is a plain script, which calls what it
likes. The backend names are the same in every release from 2.0 (torch._dynamo.list_backends).
"""

MAIN_PATHS = ("dynamo", "aot", "inductor")
"""The paths of a case that names none: tracing alone, with AOTAutograd, and the whole compiler."""


def needs_inductor(path: str) -> bool:
    """Whether a probe on this path calls Inductor, so that a warm server should warm it first."""
    return PATHS[path].get("backend") == "inductor"
