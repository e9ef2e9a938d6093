"""Does a small multilayer perceptron train through the compiler, forwards and backwards?"""
# /// case
# source = "https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html"
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2, bias=False))


def run(x):
    return model(x)


def inputs():
    return (torch.randn(3, 4),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
