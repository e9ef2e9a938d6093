"""Is the walrus operator, `(n := …)`, captured, with the name it binds usable afterwards?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0572/"
# ///
import torch


def run(x):
    if (half := x.shape[0] // 2) > 1:
        x = x * half
    return x + (total := x.sum()) * total


def inputs():
    return [(torch.arange(2.0),), (torch.arange(6.0),)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
