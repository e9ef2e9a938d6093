"""Is `match` with a class pattern, `case Shift(by=n)`, captured in one graph?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = ["https://peps.python.org/pep-0634/", "https://github.com/pytorch/pytorch/issues/171274"]
# ///
import torch


class Scale:
    factor = 2


class Shift:
    by = 3


op = Shift()


def run(x):
    x = x.sin()
    match op:
        case Scale(factor=n):
            x = x * n
        case Shift(by=n):
            x = x + n
    return x.cos()


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
