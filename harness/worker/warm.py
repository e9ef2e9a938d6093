"""What the warm server does once, so that its children need not: imports, and first compiles.

A first probe imports a third of torch (Inductor's lowerings parse 25 templates, 2 s in 2.15); a first
Inductor compile asks the compiler what the processor can do and, in later releases, precompiles a header.
That is most of the 9 to 12 seconds of a fresh process, and it is the same for every probe of a cell.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import traceback
from typing import Any

from harness.worker.observe import RECORD

_MODULES = (
    "torch._inductor.compile_fx",
    "torch._inductor.lowering",
    "torch._functorch.partitioners",
)


class Warmth:
    """How warm this process is. failure: why torch could not be imported, "" when it could."""

    def __init__(self) -> None:
        self.failure = ""
        self._is_inductor_warm = False

    def import_torch(self) -> None:
        """Imports torch with its compilers. The process keeps one thread (OMP_NUM_THREADS and
        OPENBLAS_NUM_THREADS are 1 in its environment)."""
        try:
            import torch
            import torch._dynamo
            import torch._inductor.config as inductor
        except Exception:
            self.failure = traceback.format_exc()
            return
        torch.set_num_threads(1)
        # 2.0 knows no TORCHINDUCTOR_COMPILE_THREADS, and its pools start on import.
        inductor.compile_threads = 1
        for name in _MODULES:
            with contextlib.suppress(Exception):  # no setuptools: the probes are to find that out
                importlib.import_module(name)
        _compile_once("eager")
        _compile_once("aot_eager")

    def warm_inductor(self) -> None:
        """Compiles a small function once, so that compilers and processors are asked only once."""
        if not self._is_inductor_warm:
            self._is_inductor_warm = True
            _compile_once("inductor")

    def settle_child(self) -> None:
        """In a child, before anything else of torch: what a fork leaves half done is put right.

        PyTorch marks its thread pool as lost in a child and makes a new one at the first use. In 2.15 the
        first use is eight autograd threads at once, and they race: a fork in sixty aborts with "Invalid
        thread pool!" (ATen/ParallelOpenMP.cpp). Using it once while there is one thread settles it.
        Cache folders are looked up again, for each probe has its own.
        """
        import torch

        torch.set_num_threads(1)
        for name in ("torch._inductor.codecache", "torch._inductor.runtime.cache_dir_utils"):
            found = getattr(sys.modules.get(name), "cache_dir", None)
            if found is not None and hasattr(found, "cache_clear"):  # memoised in 2.0 and 2.1
                found.cache_clear()


def _compile_once(backend: str) -> None:
    """Has Dynamo and a backend import what they import at first use. A refusal is left to the probes.

    Without gradients: the autograd engine starts threads at its first backward (in 2.15 while AOTAutograd
    traces one), and a process with more than one thread cannot fork safely.
    """
    import torch

    def small(x: Any) -> Any:
        y = x.sin()
        if backend == "eager":
            torch._dynamo.graph_break()
        return y * 2

    try:
        torch.compile(small, backend=backend)(torch.ones(8))
    except Exception:
        return
    finally:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        RECORD.clear()
        gc.collect()
        gc.freeze()  # children share these pages as long as no collection writes to them
