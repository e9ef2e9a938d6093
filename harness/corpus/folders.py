"""Folders and files of cases → the corpus."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.corpus.model import Case, Corpus
from harness.corpus.reader import read_case
from harness.errors import HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def load_corpus(roots: Sequence[Path]) -> Corpus:
    """Read every case under the roots, each a folder or a single `.py` file.

    Below a folder every `*.py` is a case, save where a name on the way starts with `_` or `.`; links
    to folders are not followed. A single file is named after the folder that it stands in. A file that
    two roots reach by the same id is one case; two files of one id are a mistake. Raises nothing.
    """
    cases: dict[str, Case] = {}
    files: dict[str, Path] = {}
    mistakes: list[HarnessError] = []
    for root in roots:
        try:
            found = list(_files_of(root))
        except OSError as error:
            mistakes.append(HarnessError(f"cannot be read: {error.strerror}", where=str(root)))
            continue
        if not found:
            mistakes.append(_nothing_in(root))
        for file, case_id, category in found:
            known = files.setdefault(case_id, file)
            if known is file:
                case, wrong = read_case(file, case_id, category)
                mistakes += wrong
                if case is not None:
                    cases[case_id] = case
            elif known.resolve() != file.resolve():
                message = f"the id {case_id!r} is already that of {known}"
                hint = "rename one of the two files"
                mistakes.append(HarnessError(message, where=str(file), hint=hint))
    in_order = tuple(cases[case_id] for case_id in sorted(cases))
    return Corpus(cases=in_order, mistakes=tuple(mistakes))


def _files_of(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Each case file of a root, with its id and category."""
    if root.is_dir():
        for file in _files_below(root):
            below = file.relative_to(root).with_suffix("").as_posix()
            yield file, below, below.rpartition("/")[0] or root.resolve().name
    elif root.suffix == ".py" and root.exists():
        # The folder is the user's, not the case's: what an id cannot hold is no reason to refuse it.
        folder = re.sub(r"[^A-Za-z0-9_.-]+", "-", root.parent.resolve().name)
        yield root, f"{folder}/{root.stem}" if folder else root.stem, folder


def _files_below(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            if not entry.is_symlink():
                yield from _files_below(entry)
        elif entry.suffix == ".py":
            yield entry


def _nothing_in(root: Path) -> HarnessError:
    if root.is_dir():
        hint = "a case is a *.py file; names that start with _ or . are passed over"
        return HarnessError("the folder holds no case", where=str(root), hint=hint)
    if root.exists():
        return HarnessError("the file is no case: its name does not end in .py", where=str(root))
    return HarnessError("there is no such folder or file of cases", where=str(root))
