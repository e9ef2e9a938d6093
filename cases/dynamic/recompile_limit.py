"""What happens when a function that must be one graph has been compiled for too many values?

PyTorch 2.0 and 2.1 compile up to 64 versions of a function; from 2.2 on the limit is 8.
"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/128954"
# ///
import torch


def add_length(x, word):
    return x + len(word)


def check(compile):
    compiled = compile(add_length, fullgraph=True, dynamic=False)
    for length in range(12):
        assert compiled(torch.zeros(1), "x" * length).item() == length


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
