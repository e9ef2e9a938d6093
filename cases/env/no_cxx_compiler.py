"""Without a C++ compiler Inductor can build no kernel: do the other paths still work?

`backend="eager"` and `backend="aot_eager"` need no compiler: they are a way round, not a speed-up.
"""
# /// case
# devices = ["cpu"]
# isolation = "process"
# source = "https://github.com/pytorch/pytorch/issues/92745"
# ///
import os

# Before torch is imported, since it may look for its compiler once and for all.
os.environ["PATH"] = "/nonexistent"
for name in ("CC", "CXX", "TORCH_INDUCTOR_INSTALL_GXX"):
    os.environ.pop(name, None)

import torch


def run(x):
    return torch.sin(x) + torch.cos(x)


def inputs():
    return (torch.linspace(0, 1, 8),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
