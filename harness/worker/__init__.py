"""What runs inside a cell: the standard library and torch only, Python 3.10 and torch 2.0 or newer.

Nothing of the rest of the harness is imported here, and no third party: a cell holds torch and what
torch brings, and a case run alone (`python cases/bytecode/walrus.py`) has nothing else either.
"""

PROTOCOL = 1
"""Version of what a probe means. Raise it when a change here could change a verdict: results measured
under another number are not reused."""
