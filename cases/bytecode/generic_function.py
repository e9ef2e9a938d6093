"""Is a generic function in the syntax of PEP 695, `def f[T](…)`, defined inside, captured?"""
# /// case
# python = ">=3.12"
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0695/"
# ///
import torch


def run(x):
    x = x.sin()

    def first[T](items: list[T]) -> T:
        return items[0]

    return first([x, x + 1]).cos()


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
