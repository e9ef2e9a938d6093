"""Do graph breaks inside two alternative `with` blocks, after an earlier break, still compile?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/162313"
# ///
import torch
import torch._dynamo


def run(x, double):
    x = x.sin()
    torch._dynamo.graph_break()
    x = x + 1
    if double:
        with torch.no_grad():
            x = x * 2
            torch._dynamo.graph_break()
    else:
        with torch.no_grad():
            x = x / 2
            torch._dynamo.graph_break()
    return x.cos()


def inputs():
    return [(torch.arange(4.0), True), (torch.arange(4.0), False)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
