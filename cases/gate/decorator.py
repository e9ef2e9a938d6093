"""Does `@torch.compile` above a function work on this pair of Python and PyTorch?

The first thing to know about a pair. PyTorch 2.0 refuses Python 3.11, 2.2 and 2.3 refuse 3.12, 2.4
and 2.5 refuse 3.13: "upgrade PyTorch" and "use an older Python" are both answered by this row.
"""
# /// case
# source = [
#     "https://github.com/pytorch/pytorch/issues/120233",
#     "https://github.com/pytorch/pytorch/issues/144048",
# ]
# ///
import os

import torch

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


def check(compile):
    @compile
    def wave(x):
        return torch.sin(x) * 2 + 1

    x = torch.linspace(0, 3, 6, device=device)
    torch.testing.assert_close(wave(x), torch.sin(x) * 2 + 1)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
