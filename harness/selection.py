"""Which cases and which paths are meant: the words behind `--cases` and `--paths`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from harness.errors import HarnessError, HarnessErrors
from harness.matrix_file.wording import suggestion
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harness.corpus import Case


def select_cases(cases: Sequence[Case], patterns: Sequence[str]) -> tuple[Case, ...]:
    """The cases that any of the patterns means, in their own order; all of them without a pattern.

    A pattern is an id, a folder of ids (`bytecode`), or either with `*`, `?` and `[…]`, where `*`
    also stands for `/`; several may stand in one text, with commas between them.
    Raises: HarnessError(s) for a pattern that means no case, even where another means one.
    """
    ids = [case.id for case in cases]
    folders = sorted({folder for case_id in ids for folder in _folders_of(case_id)})
    anywhere = sorted({f"*/{case_id.rpartition('/')[2]}" for case_id in ids if "/" in case_id})
    otherwise = f"there are: {', '.join(folders or ids)}" if ids else "there is no case at all"

    def hint(word: str) -> str:
        return suggestion(word, [*ids, *folders, *anywhere], otherwise)

    chosen = _select(ids, patterns, _means_case, "case", hint)
    return tuple(case for case in cases if case.id in chosen)


def select_paths(patterns: Sequence[str], paths: Iterable[str] = tuple(PATHS)) -> tuple[str, ...]:
    """The compile paths that any of the patterns means, in the order of `paths`; all without a pattern.

    Patterns are written as those of cases are; `inductor` is that path alone, `inductor*` its variants
    too. Raises: HarnessError(s) for a pattern that means no path.
    """
    names = list(paths)

    def hint(word: str) -> str:
        return suggestion(word, names, f"there are: {', '.join(names)}")

    chosen = _select(names, patterns, fnmatchcase, "path", hint)
    return tuple(name for name in names if name in chosen)


def _select(
    names: Sequence[str],
    patterns: Sequence[str],
    means: Callable[[str, str], bool],
    kind: str,
    hint: Callable[[str], str],
) -> frozenset[str]:
    if not patterns:
        return frozenset(names)
    words = [word.strip() for pattern in patterns for word in pattern.split(",") if word.strip()]
    if not words:
        message = f"an empty {kind} pattern means nothing"
        raise HarnessError(message, hint=f"leave it out to have every {kind}")
    found = {word: {name for name in names if means(name, word)} for word in words}
    mistakes = tuple(
        HarnessError(f"no {kind} is meant by {word!r}", hint=hint(word.strip("*/")))
        for word in found
        if not found[word]
    )
    if mistakes:
        raise mistakes[0] if len(mistakes) == 1 else HarnessErrors(mistakes)
    return frozenset().union(*found.values())


def _means_case(case_id: str, word: str) -> bool:
    pattern = word.removesuffix(".py").rstrip("/")
    return any(fnmatchcase(name, pattern) for name in (case_id, *_folders_of(case_id)))


def _folders_of(case_id: str) -> tuple[str, ...]:
    """`a/b` and `a` for `a/b/c`."""
    parts = case_id.split("/")[:-1]
    return tuple("/".join(parts[:count]) for count in range(len(parts), 0, -1))
