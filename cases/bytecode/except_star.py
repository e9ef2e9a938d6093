"""Is `except*`, which handles parts of an exception group, captured, or at least run right?"""
# /// case
# python = ">=3.11"
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0654/"
# ///
import torch


def run(x):
    x = x.sin()
    try:
        raise ExceptionGroup("both", [ValueError(1), TypeError(2)])
    except* ValueError:
        x = x + 1
    except* TypeError:
        x = x * 2
    return x.cos()


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
