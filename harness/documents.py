"""Generated documents: the JSON Schemas, and the parts of README.md between markers.

`python -m harness.documents` writes them; `--check` only compares, and names the command that writes. What
README shows is taken from the published table, docs/support.md, so that the two cannot disagree.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import schemas
from harness.corpus import load_corpus
from harness.errors import ExitStatus, HarnessError

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
_COMMAND = "nox -s docs"


def readme_parts(root: Path) -> dict[str, str]:
    """The generated parts of README by the name in their markers.

    root: the project, with a published table. Raises: HarnessError when there is none, or when it has
    another form.
    """
    try:
        table = (root / "docs/support.md").read_text(encoding="utf-8")
        document = json.loads((root / "docs/support.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"the published table cannot be read: {error}"
        hint = "publish one: compile-matrix report --publish docs"
        raise HarnessError(message, hint=hint, status=ExitStatus.OUR_FAULT) from error
    return {"table": f"{_summary(table)} {_machines(document)}", "corpus": _corpus(root)}


def fill(text: str, parts: dict[str, str]) -> str:
    """`text` with what stands between `<!-- name: generated -->` and `<!-- end of name -->` replaced.

    Raises: HarnessError for a marker that is missing.
    """
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            message = f"the markers of {name!r} must stand in it once"
            raise HarnessError(message, where="README.md", status=ExitStatus.OUR_FAULT)
        begin, end = pattern.findall(text)[0]
        text = pattern.sub("\0", text).replace("\0", f"{begin}\n{part}\n\n{end}")
    return text


def _summary(table: str) -> str:
    """What compiles where, and which torch a Python needs: the head of the table, without its headings."""
    head = table.partition("\n## The table\n")[0]
    sections = re.split(r"^## .*\n", head, flags=re.MULTILINE)
    measured = re.search(r"Newest measurement: [^.\n]*", head)
    if len(sections) < 3 or measured is None:
        message = "docs/support.md has not the form that README is made from"
        raise HarnessError(message, where="docs/support.md", status=ExitStatus.OUR_FAULT)
    body = "\n\n".join(section.strip() for section in sections[1:])
    return f"{body}\n\n{measured[0]}."


def _machines(document: dict[str, Any]) -> str:
    """What measured it, in a sentence."""
    told = []
    for machine in document["environment"]["machines"].values():
        facts = machine["facts"]
        told.append(
            f"{facts['system']}, {facts['processor']}, {facts['cores']} cores, {facts['memory']},"
            f" {facts['compiler']}"
        )
    return f"Measured on: {'; '.join(told)}."


def _corpus(root: Path) -> str:
    corpus = load_corpus([root / "cases"])
    counted = Counter(case.category for case in corpus.cases)
    rows = [f"| [{name}](cases/{name}) | {count} |" for name, count in sorted(counted.items())]
    head = ["| Folder | Cases |", "| --- | --- |"]
    return "\n".join([*head, *rows, f"| all | {len(corpus.cases)} |"])


def main(argv: Sequence[str] | None = None) -> int:
    """Writes what is stale, or with `--check` fails on it with the difference."""
    parser = argparse.ArgumentParser(prog="python -m harness.documents", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args(argv).check
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    try:
        after = fill(before, readme_parts(ROOT))
    except HarnessError as error:
        sys.stderr.write(error.render() + "\n")
        return int(error.status)
    stale = list(schemas.write(schemas.FOLDER, check=check))
    if before != after:
        stale.append(readme)
        if not check:
            readme.write_text(after, encoding="utf-8", newline="\n")
    if not check:
        return 0
    if before != after:
        difference = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        sys.stderr.write("\n".join(difference) + "\n")
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)} is not up to date: {_COMMAND}\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
