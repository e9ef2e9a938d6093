"""Are list and dict comprehensions, which Python 3.12 inlines into the function, captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0709/"
# ///
import torch


def run(x):
    powers = [x**n for n in range(1, 4)]
    named = {n: power.sum() for n, power in enumerate(powers)}
    return named[0] + named[2], powers[1]


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
