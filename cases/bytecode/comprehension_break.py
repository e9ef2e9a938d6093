"""Does a graph break inside a list comprehension leave the code around it compiled?

From Python 3.12 on a comprehension is no frame of its own that could be left alone.
"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://peps.python.org/pep-0709/",
#     "https://github.com/pytorch/pytorch/pull/173558",
# ]
# ///
import zlib

import torch


def run(x):
    x = x.sin()
    checksums = [zlib.crc32(name) % 5 for name in (b"a", b"b", b"c")]
    return x.cos() + sum(checksums)


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
