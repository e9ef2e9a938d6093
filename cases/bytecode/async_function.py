"""Is a coroutine that the function drives itself, without an event loop, at least run right?"""
# /// case
# paths = ["dynamo"]
# devices = ["cpu"]
# source = [
#     "https://github.com/pytorch/pytorch/issues/93738",
#     "https://github.com/pytorch/pytorch/issues/150319",
# ]
# ///
import torch


async def double(x):
    return x * 2


async def double_twice(x):
    return await double(await double(x))


def run(x):
    try:
        double_twice(x).send(None)
    except StopIteration as finished:
        return finished.value


def inputs():
    return (torch.arange(4.0),)


if __name__ == "__main__":
    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    from harness.worker.alone import main
    main(__file__)
