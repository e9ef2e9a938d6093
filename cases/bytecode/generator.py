"""Is a generator with `yield` and `yield from`, consumed in the function, captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://peps.python.org/pep-0380/",
#     "https://github.com/pytorch/pytorch/issues/93737",
# ]
# ///
import torch


def doubled(x, count):
    for _ in range(count):
        x = x * 2
        yield x


def and_last(x):
    last = None
    for last in doubled(x, 2):
        yield last
    yield from (last + n for n in range(2))


def run(x):
    return sum(and_last(x))


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
