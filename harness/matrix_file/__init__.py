"""The border of matrix.yaml: its text, its shape, and every slip in it as one sentence with its place.

`read` gives what is sound of a file together with its mistakes; `harness.matrix` makes cells of it.
`MatrixFile` is what the file's JSON Schema is generated from.
"""

from harness.matrix_file.checks import wheels_of
from harness.matrix_file.models import DEFAULT_DEADLINE, MatrixFile, bytes_of
from harness.matrix_file.patterns import PLATFORMS, Pattern, parse_pattern
from harness.matrix_file.reading import Reading, read
from harness.matrix_file.yaml_text import Mistake

__all__ = [
    "DEFAULT_DEADLINE",
    "PLATFORMS",
    "MatrixFile",
    "Mistake",
    "Pattern",
    "Reading",
    "bytes_of",
    "parse_pattern",
    "read",
    "wheels_of",
]
