"""Does an inner function change a variable of the outer one with `nonlocal`?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.python.org/3/reference/simple_stmts.html#the-nonlocal-statement"
# ///
import torch


def run(x):
    steps = 0

    def step(y, by=1):
        nonlocal steps
        steps += by
        return y * steps

    x = step(step(x), by=2)
    return x, steps


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
