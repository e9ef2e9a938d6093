"""matrix.yaml → the cells of the matrix, and which of them are meant by a pattern.

A cell is one environment: Python × torch × device × era × platform. Nothing here looks at the machine:
the platform and the interpreters that were found are passed in.
"""

from harness.matrix.loading import load_matrix
from harness.matrix.model import (
    Cell,
    Device,
    Era,
    Impossible,
    Indexes,
    Limits,
    Matrix,
    Python,
    Release,
)

__all__ = [
    "Cell",
    "Device",
    "Era",
    "Impossible",
    "Indexes",
    "Limits",
    "Matrix",
    "Python",
    "Release",
    "load_matrix",
]
