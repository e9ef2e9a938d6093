"""Does `torch.compile(module)` work, called on an `nn.Module` instead of a function?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://github.com/pytorch/pytorch/issues/104918"
# ///
import os

import torch

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x) * 2


def check(compile):
    model = Scale().to(device)
    x = torch.ones(4, 3, device=device)
    torch.testing.assert_close(compile(model)(x), model(x))


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
