"""Is a context manager written as a generator with `@contextlib.contextmanager` captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://docs.python.org/3/library/contextlib.html#contextlib.contextmanager",
#     "https://github.com/pytorch/pytorch/issues/133483",
# ]
# ///
import contextlib

import torch

depth = 1
entered = 0


@contextlib.contextmanager
def deeper():
    global depth, entered
    depth, entered = depth + 1, entered + 1
    try:
        yield
    finally:
        depth -= 1


def run(x):
    x = x.sin()
    with deeper():
        x = x * depth
    return x + depth


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
