"""Does a `print` in the middle cost a graph break, and does it still print once, in its place?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html"
# ///
import torch


def run(x):
    x = x + 1
    print("rows:", x.shape[0])
    return x * 3


def inputs():
    return (torch.arange(6.0).reshape(3, 2),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
