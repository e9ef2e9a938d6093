"""Does a small convolutional network train through the compiler, forwards and backwards?"""
# /// case
# paths = ["aot", "inductor"]
# source = "https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html"
# ///
import torch
from torch import nn

model = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3, bias=False)
)


def run(images):
    return model(images)


def inputs():
    return (torch.randn(2, 1, 4, 4),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
