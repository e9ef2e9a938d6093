"""Does an `if` over a tensor's value stay an `if`? `torch.jit.trace` keeps one branch only."""
# /// case
# paths = ["dynamo", "jit-trace"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html"
# ///
import torch


def run(x):
    x = x * 2
    if x.sum() > 0:
        return x + 1
    return x - 1


def inputs():
    return [(torch.ones(3),), (-torch.ones(3),)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
