"""Times the profile `quick`: from an empty store to its reports, to its first verdict, and once more."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Prints three durations in seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--store", type=Path, help="an existing store, to leave the downloads out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compile-matrix-benchmark-") as folder:
        store = options.store or Path(folder) / "store"
        argv = (sys.executable, "-m", "harness", "run", "--profile", options.profile)
        argv += ("--cache", str(store), "--reports", str(Path(folder) / "reports"))
        first, whole = _timed(argv)
        print(f"first verdict after {first:.1f} s, reports after {whole:.1f} s", flush=True)
        _, again = _timed(argv)
        print(f"again, with nothing changed: {again:.1f} s")


def _timed(argv: tuple[str, ...]) -> tuple[float, float]:
    """Seconds until the first verdict is shown, and until the end."""
    begun = time.monotonic()
    first = 0.0
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if line.startswith("[") and not first:
                first = time.monotonic() - begun
            sys.stderr.write(line)
    return first, time.monotonic() - begun


if __name__ == "__main__":
    main()
