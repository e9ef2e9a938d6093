"""With `fullgraph=True`, is a function that needs a graph break refused instead of split?

It is meant to be: the error is what asking for one graph is for.
"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
# ///
import torch
import torch._dynamo


def in_two_parts(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def check(compile):
    compiled = compile(in_two_parts, fullgraph=True)
    assert compiled(torch.zeros(2)).tolist() == [2.0, 2.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
