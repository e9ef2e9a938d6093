"""What the warm server does once, so that its children need not: imports, and a first Inductor compile.

An Inductor process asks the compiler what the processor can do, and (from 2.9) precompiles a header; that
is most of the 9 to 12 seconds of a first compile, and it is the same for every probe of the cell.
"""

from __future__ import annotations

import gc
import sys
import traceback
from typing import Any

from harness.worker.observe import RECORD


class Warmth:
    """How warm this process is. failure: why torch could not be imported, "" when it could."""

    def __init__(self) -> None:
        self.failure = ""
        self._is_inductor_warm = False

    def import_torch(self) -> None:
        """Imports torch with Dynamo. The process keeps one thread (OPENBLAS/OMP_NUM_THREADS are 1)."""
        try:
            import torch
            import torch._dynamo

            torch.set_num_threads(1)
        except Exception:
            self.failure = traceback.format_exc()
            return
        _compile_once("eager")
        _compile_once("aot_eager")

    def warm_inductor(self) -> None:
        """Compiles a small function once, so that compilers and processors are asked only once."""
        if self._is_inductor_warm:
            return
        self._is_inductor_warm = True
        import torch._inductor.config as inductor

        # 2.0 knows no TORCHINDUCTOR_COMPILE_THREADS, and its pools are threads of this process.
        inductor.compile_threads = 1
        _compile_once("inductor")

    def forget_folders(self) -> None:
        """In a child: cache folders are looked up again, for each probe has its own."""
        for name in ("torch._inductor.codecache", "torch._inductor.runtime.cache_dir_utils"):
            found = getattr(sys.modules.get(name), "cache_dir", None)
            if hasattr(found, "cache_clear"):  # memoised in 2.0 and 2.1
                found.cache_clear()


def _small(x: Any) -> Any:
    return x.sin() * 2


def _compile_once(backend: str) -> None:
    """Has Dynamo and a backend import what they import at first use. A refusal is left to the probes.

    Forward only: the autograd engine starts threads at its first backward, and a process with more than
    one thread cannot fork safely.
    """
    import torch

    try:
        torch.compile(_small, backend=backend)(torch.ones(8, requires_grad=backend != "inductor"))
    except Exception:
        return
    finally:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        RECORD.clear()
        gc.collect()
        gc.freeze()  # children share these pages as long as no collection writes to them
