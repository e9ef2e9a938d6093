"""Does `torch.compile(function)` work, called on a function that exists already?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://github.com/pytorch/pytorch/issues/120233"
# ///
import torch


def run(x, y):
    return torch.relu(x @ y) + x.mean()


def inputs():
    return torch.arange(9.0).reshape(3, 3), torch.eye(3)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
