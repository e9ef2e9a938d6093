"""Is `torch.func.vmap`, called inside the function, captured?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://github.com/pytorch/pytorch/pull/101384"
# ///
import torch


def run(x):
    return torch.func.vmap(lambda row: (row * row).sum())(x) + 1


def inputs():
    return (torch.arange(6.0).reshape(2, 3),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
