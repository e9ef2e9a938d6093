"""Is an `autograd.Function` with a backward of its own captured, with the gradient it defines?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://docs.pytorch.org/docs/stable/notes/extending.html"
# ///
import torch


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * torch.where(x.abs() <= 1, 1.0, 0.25)


def run(x):
    return Clamped.apply(x * 2) + 1


def inputs():
    return (torch.linspace(-1, 1, 5).requires_grad_(),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
