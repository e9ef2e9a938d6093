"""Does `torch.jit.trace` take the same model, also on a Python that `torch.compile` refuses?"""
# /// case
# paths = ["dynamo", "aot", "inductor", "jit-trace"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html"
# ///
import torch
from torch import nn

# Traced as a function, in which a tensor that asks for gradients could not be a constant.
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).requires_grad_(False).eval()


def run(x):
    return model(x)


def inputs():
    return (torch.randn(3, 4),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
