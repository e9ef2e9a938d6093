"""Does `torch._dynamo.graph_break()` split the function in two graphs, both of them compiled?"""
# /// case
# paths = ["dynamo", "aot"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html"
# ///
import torch
import torch._dynamo


def run(x):
    x = x.sin() + 1
    torch._dynamo.graph_break()
    return x.cos() * 2


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
