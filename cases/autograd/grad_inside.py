"""Is `torch.autograd.grad`, called inside the function, captured with it?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://github.com/pytorch/pytorch/issues/183603"
# ///
import torch


def run(x):
    energy = (x.sin() ** 2).sum()
    (force,) = torch.autograd.grad(energy, x)
    return energy.detach(), -force


def inputs():
    return (torch.arange(4.0, requires_grad=True),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
