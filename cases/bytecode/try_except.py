"""Is an exception that is raised and handled inside the function captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://docs.python.org/3/reference/compound_stmts.html#try",
#     "https://github.com/pytorch/pytorch/issues/112865",
# ]
# ///
import torch


def at_most_three(x):
    if x.shape[0] > 3:
        raise ValueError("too long")
    return x + 1


def run(x):
    x = x.sin()
    try:
        x = at_most_three(x)
    except ValueError:
        x = at_most_three(x[:3])
    return x.cos()


def inputs():
    return [(torch.arange(3.0),), (torch.arange(5.0),)]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
