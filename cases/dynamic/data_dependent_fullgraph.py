"""Is an `if` over `.item()` refused with `fullgraph=True`, as no graph can hold the decision?

It is meant to be. In PyTorch 2.0 scalars can be captured only with dynamic shapes switched on too.
"""
# /// case
# torch = ">=2.1"
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/147672"
# ///
import torch
import torch._dynamo

torch._dynamo.config.capture_scalar_outputs = True


def step(x):
    total = x.sum().item()
    return x + 1 if total > 0 else x - 1


def check(compile):
    compiled = compile(step, fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
