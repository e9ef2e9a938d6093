"""Is a list that a method of a locally defined class appends to still appended to when compiled?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/197896"
# ///
import torch


def make_step():
    history = []

    class Log:
        def write(self, factor):
            history.append(factor)

    def step(x, factor):
        Log().write(factor)
        return x * factor

    return step, history


step, history = make_step()


def run(x):
    return step(x, 3) + 1


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
