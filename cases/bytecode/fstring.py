"""Is an f-string over sizes and numbers, with a format specification, captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://peps.python.org/pep-0498/"
# ///
import torch

scales = {"04 rows": 3}


def run(x):
    key = f"{x.shape[0]:02d} rows"
    return x * scales[key], key


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
