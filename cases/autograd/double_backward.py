"""Can a gradient of a compiled function be differentiated once more?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://github.com/pytorch/pytorch/issues/91469"
# ///
import os

import torch

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


def check(compile):
    cube = compile(lambda x: x * x * x)
    x = torch.tensor(2.0, device=device, requires_grad=True)
    (slope,) = torch.autograd.grad(cube(x), x, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, x)
    assert (slope.item(), curvature.item()) == (12.0, 12.0)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
