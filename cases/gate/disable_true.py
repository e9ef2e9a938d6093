"""Can `torch.compile(…, disable=True)`, the off switch of one function, be written on this pair?

The version of Python is looked at before `disable` is: where it is refused, a program that switches
compiling off stops all the same.
"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
# ///
import torch


def check(compile):
    plain = compile(lambda x: x * 2, disable=True)
    compiled = compile(lambda x: x + 1)
    assert compiled(plain(torch.ones(3))).tolist() == [3.0, 3.0, 3.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
