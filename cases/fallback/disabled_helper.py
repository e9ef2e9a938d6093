"""Is anything compiled when all the work is done in a helper marked `torch._dynamo.disable`?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.compiler.disable.html"
# ///
import torch
import torch._dynamo


@torch._dynamo.disable
def work(x):
    return x.sin() + 1


def run(x):
    return work(x)


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
