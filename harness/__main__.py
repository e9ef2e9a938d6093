"""`python -m harness` is `compile-matrix`."""

import sys

from harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
