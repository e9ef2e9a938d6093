"""Is a class that is defined inside the function, and used there, captured?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.python.org/3/reference/compound_stmts.html#class-definitions"
# ///
import torch


def run(x):
    x = x.sin()

    class Doubler:
        factor = 2

        def apply(self, y):
            return y * self.factor

    return Doubler().apply(x).cos()


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
