"""Is a value read through a view of another dtype kept when the tensor is written later?"""
# /// case
# paths = ["aot", "inductor"]
# source = "https://github.com/pytorch/pytorch/issues/198101"
# ///
import torch


def run(x):
    halves = x.view(torch.int16) + 1
    halves.mul_(2)
    x[:, 1:3] = 5
    return halves.view(torch.int32)


def inputs():
    return (torch.arange(-6, 6, dtype=torch.int32).reshape(3, 4),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
