"""Is `finally`, around a `try` with `except`, captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.python.org/3/reference/compound_stmts.html#finally-clause"
# ///
import torch

closed = 0


def run(x):
    global closed
    x = x.sin()
    try:
        x = x + 1
    except ValueError:
        x = x - 1
    finally:
        closed += 1
    return x.cos()


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
