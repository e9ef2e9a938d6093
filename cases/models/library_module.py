"""Is a module of `torch.nn` itself compiled, when it is the whole model?"""
# /// case
# paths = ["dynamo"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
# ///
import os

import torch

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


def check(compile):
    model = torch.nn.Linear(3, 2, device=device)
    x = torch.ones(4, 3, device=device)
    torch.testing.assert_close(compile(model)(x), model(x))


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
