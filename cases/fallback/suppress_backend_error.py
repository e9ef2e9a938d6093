"""Does `suppress_errors = True` turn a backend that fails into a silent fall-back to eager?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html"
# ///
import torch
import torch._dynamo

torch._dynamo.config.suppress_errors = True


def failing(graph, example_inputs):
    raise RuntimeError("this backend compiles nothing")


def check(compile):
    compiled = compile(lambda x: x.sin() + 1, backend=failing)
    assert compiled(torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
