"""Is a `with` block, `torch.no_grad()` within a function that needs gradients, captured?"""
# /// case
# paths = ["dynamo", "aot"]
# devices = ["cpu"]
# source = "https://docs.python.org/3/reference/compound_stmts.html#with"
# ///
import torch


def run(x):
    with torch.no_grad():
        scale = x.abs().sum()
    return x / scale, scale


def inputs():
    return (torch.arange(1.0, 5.0, requires_grad=True),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
