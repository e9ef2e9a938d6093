"""Does `suppress_errors = True` also suppress the refusal of an unsupported Python? It does not."""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/120233"
# ///
import torch
import torch._dynamo

torch._dynamo.config.suppress_errors = True


def check(compile):
    compiled = compile(lambda x: x.cos() * 2)
    assert compiled(torch.zeros(3)).tolist() == [2.0, 2.0, 2.0]


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
