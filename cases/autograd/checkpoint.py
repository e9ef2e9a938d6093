"""Is activation checkpointing, `torch.utils.checkpoint`, captured, with the right gradients?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://docs.pytorch.org/docs/stable/checkpoint.html"
# ///
import torch
from torch.utils.checkpoint import checkpoint


def expensive(x):
    return torch.sigmoid(x) * x.sin()


def run(x):
    return checkpoint(expensive, x, use_reentrant=False) + 1


def inputs():
    return (torch.arange(4.0, requires_grad=True),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
