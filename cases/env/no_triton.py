"""Is Triton needed? Not on a CPU, where it may be absent; on a GPU Inductor alone misses it."""
# /// case
# isolation = "process"
# source = "https://github.com/pytorch/pytorch/issues/125093"
# ///
import sys

# Importing it raises ModuleNotFoundError from here on, as if it had never been installed.
sys.modules["triton"] = None

import torch


def run(x):
    return torch.tanh(x) * x + 1


def inputs():
    return (torch.linspace(-1, 1, 8),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
