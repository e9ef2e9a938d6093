"""Does a function called with one size after another stay right, and compiled?

From PyTorch 2.1 on the second size makes the graph dynamic; 2.0 compiles once for each size.
"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
# ///
import torch


def run(x):
    return x.sin().mean(dim=0) * x.shape[0]


def inputs():
    return [(torch.arange(2.0 * n).reshape(n, 2),) for n in (3, 4, 7, 1)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
