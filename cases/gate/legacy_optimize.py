"""Does the entry point of before `torch.compile`, `torch._dynamo.optimize`, work on this pair?

Where it does not, it says so in other words than `torch.compile` does.
"""
# /// case
# devices = ["cpu"]
# source = "https://github.com/pytorch/pytorch/issues/104918"
# ///
import torch
import torch._dynamo

graphs = []


def keep_graph(graph, example_inputs):
    graphs.append(graph)
    return graph.forward


compiled = torch._dynamo.optimize(keep_graph)(lambda x: x.cos() + 1)
torch.testing.assert_close(compiled(torch.zeros(3)), torch.full((3,), 2.0))
assert len(graphs) == 1, f"{len(graphs)} graphs were compiled"
