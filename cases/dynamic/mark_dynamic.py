"""Does `torch._dynamo.mark_dynamic` make the first compiled graph serve every size?"""
# /// case
# paths = ["dynamo", "aot"]
# source = "https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html"
# ///
import os

import torch
import torch._dynamo

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


def check(compile):
    compiled = compile(lambda x: x.sum() * x.shape[0], fullgraph=True)
    for size in (4, 6, 9):
        x = torch.ones(size, device=device)
        torch._dynamo.mark_dynamic(x, 0)
        assert compiled(x).item() == size * size


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
