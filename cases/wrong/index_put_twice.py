"""Is `rows[index] += …`, with an index that names a row twice, written once, as in eager?"""
# /// case
# paths = ["aot", "inductor-dynamic"]
# source = "https://github.com/pytorch/pytorch/issues/138908"
# ///
import torch


def run(rows, index):
    rows[index - 1] += rows[index - 1]
    return rows


def inputs():
    return torch.arange(1.0, 7.0).reshape(3, 2), torch.tensor([[2, 2]])


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
