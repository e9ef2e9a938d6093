"""The corpus: case files → cases, read as text. A Python that could not parse a case can plan it.

Use `load_corpus`. One mistake hides neither another nor the cases beside it: all are collected.
"""

from harness.corpus.folders import load_corpus
from harness.corpus.model import DEVICES, SCRIPT, Case, Corpus

__all__ = ["DEVICES", "SCRIPT", "Case", "Corpus", "load_corpus"]
