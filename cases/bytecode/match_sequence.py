"""Is `match` with sequence patterns, `case [first, *rest]`, captured in one graph?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0634/"
# ///
import torch


def run(x, sizes):
    match sizes:
        case [only]:
            return x * only
        case [first, *rest]:
            return x * first + len(rest)
    return x


def inputs():
    return [(torch.ones(3), [2]), (torch.ones(3), [2, 5, 7])]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
