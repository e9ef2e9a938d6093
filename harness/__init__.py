"""The torch.compile support matrix: what compiles on which Python and which PyTorch, measured.

Nothing is imported here: `harness.worker` runs inside the cells, where only torch and the standard
library exist.
"""

__version__ = "0.1.0"
