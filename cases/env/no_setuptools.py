"""Does Inductor work in an environment without setuptools, as uv and Python 3.12 make them?

Not every release of PyTorch declares that Inductor imports it.
"""
# /// case
# paths = ["inductor"]
# isolation = "process"
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/173823"
# ///
import sys

# Importing them raises ModuleNotFoundError from here on, as if they had never been installed.
sys.modules["setuptools"] = sys.modules["pkg_resources"] = None

import torch


def run(x):
    return x * 3 - 1


def inputs():
    return (torch.arange(6.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
