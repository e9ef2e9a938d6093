"""Is the `!r` of an f-string, `f"{name!r}"`, still applied when compiled?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://docs.python.org/3/library/dis.html#opcode-CONVERT_VALUE",
#     "https://github.com/pytorch/pytorch/pull/141858",
# ]
# ///
import torch

name = "weight"


def run(x):
    return x + 1, f"{name!r} has {x.shape[0]} rows"


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
