"""Is `flex_attention`, with a function of the user's that changes the scores, captured?"""
# /// case
# torch = ">=2.5"
# paths = ["dynamo"]
# source = "https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html"
# ///
import os

import torch

device = os.environ.get("COMPILE_MATRIX_DEVICE", "cpu")


def nearer(score, batch, head, query, key):
    return score - (query - key).abs()


# Not `run`: a Python that is refused is refused to plain flex_attention too, as it compiles itself.
def check(compile):
    from torch.nn.attention.flex_attention import flex_attention

    x = torch.linspace(-1, 1, 512, device=device).reshape(1, 2, 16, 16)
    place = torch.arange(16, device=device)
    scores = x @ x.mT / 4 - (place[:, None] - place).abs()
    attend = compile(lambda q, k, v: flex_attention(q, k, v, score_mod=nearer))
    want = scores.softmax(dim=-1) @ x
    torch.testing.assert_close(attend(x, x.clone(), x + 0), want, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
