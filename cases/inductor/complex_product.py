"""Does Inductor multiply complex numbers, in its own kernel or by falling back to eager's?"""
# /// case
# paths = ["inductor"]
# source = "https://github.com/pytorch/pytorch/issues/97562"
# ///
import torch


def run(x, y):
    return x * y + 1


def inputs():
    return torch.tensor([1 + 2j, 3 - 1j]), torch.tensor([2j, 1 + 1j])


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
