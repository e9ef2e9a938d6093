"""Is `match` with mapping patterns, `case {"scale": factor}`, captured in one graph?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0634/"
# ///
import torch


def run(x, options):
    match options:
        case {"scale": factor, "shift": by}:
            return x * factor + by
        case {"scale": factor}:
            return x * factor
    return x


def inputs():
    return [(torch.ones(3), {"scale": 2}), (torch.ones(3), {"shift": 1, "scale": 3})]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
