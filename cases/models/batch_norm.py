"""Does batch normalisation, in training, update its running statistics once in each call?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html"
# ///
import torch
from torch import nn

norm = nn.BatchNorm1d(3)


def run(x):
    return norm(x) * 2


def inputs():
    return [(torch.randn(4, 3),), (torch.randn(4, 3),)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
