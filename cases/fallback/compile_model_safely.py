"""Does a `try` around `torch.compile` that falls back to the plain model end up compiled, or plain?

`uncompiled` here means that the program ran, and that nothing was gained.
"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/120233"
# ///
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def compile_model_safely(model, compile, example):
    try:
        compiled = compile(model)
        compiled(example)  # most of what can fail fails in the first call
    except Exception:
        return model
    return compiled


def check(compile):
    x = torch.arange(-2.0, 2.0)
    chosen = compile_model_safely(Model(), compile, x)
    assert chosen(x).tolist() == [1.0, 1.0, 1.0, 2.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
