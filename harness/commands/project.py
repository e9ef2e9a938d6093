"""What every command needs first: the project's folder, its matrix, the selected cells and cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.corpus import Case, load_corpus
from harness.errors import HarnessError, HarnessErrors
from harness.interpreters import Interpreter, find_interpreters
from harness.machine import current_platform
from harness.matrix import Cell, Matrix, load_matrix
from harness.selection import select_cases, select_paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


DEFAULT_PROFILE = "quick"


def find_project(named: Path | None) -> Path:
    """The folder with matrix.yaml: the one named, else this one or one above, else the harness's own.

    Raises: HarnessError when there is none.
    """
    if named is not None:
        if not (named / "matrix.yaml").is_file():
            msg = "there is no matrix.yaml in this folder"
            raise HarnessError(msg, where=str(named))
        return named
    here = Path.cwd()
    own = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, own):
        if (folder / "matrix.yaml").is_file():
            return folder
    hint = "run this in a checkout of the project, or name one with --project"
    msg = "there is no matrix.yaml in this folder or above it"
    raise HarnessError(msg, where=str(here), hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a command line means here. mistakes: of cases that could not be read; the others still run."""

    root: Path
    matrix: Matrix
    interpreters: Mapping[str, Interpreter]
    cells: tuple[Cell, ...]
    cases: tuple[Case, ...]
    paths: tuple[str, ...]
    mistakes: tuple[HarnessError, ...]


def select(options: argparse.Namespace, env: Mapping[str, str]) -> Selection:
    """Reads matrix.yaml and the cases, looks for interpreters, and selects. Raises: HarnessError."""
    root = find_project(options.project)
    matrix = load_matrix(root / "matrix.yaml")
    interpreters = find_interpreters([python.version for python in matrix.pythons], env=env)
    cells = _select_cells(options, matrix, frozenset(interpreters))
    cases, mistakes = choose_cases(root / "cases", options.cases)
    return Selection(
        root=root,
        matrix=matrix,
        interpreters=interpreters,
        cells=cells,
        cases=cases,
        paths=select_paths(options.paths),
        mistakes=mistakes,
    )


def _select_cells(
    options: argparse.Namespace, matrix: Matrix, found: frozenset[str]
) -> tuple[Cell, ...]:
    platform = current_platform()
    if options.cells:
        patterns = [p.strip() for text in options.cells for p in text.split(",") if p.strip()]
        if not patterns:
            hint = f"leave --cells out to have the profile {DEFAULT_PROFILE}"
            msg = "an empty cell pattern means nothing"
            raise HarnessError(msg, hint=hint)
        return matrix.cells(patterns, platform=platform, found_pythons=found)
    if getattr(options, "interpreter", None) and options.profile is None:
        return ()
    name = options.profile or DEFAULT_PROFILE
    return matrix.profile(name, platform=platform, found_pythons=found)


def choose_cases(
    home: Path, words: Sequence[str]
) -> tuple[tuple[Case, ...], tuple[HarnessError, ...]]:
    """The cases that `--cases` means, and what is wrong with those that could not be read.

    A word that names a file or a folder is that; any other is a pattern over the project's own cases.
    Without a word: all of the project's own. Raises: HarnessError when nothing is left to run.
    """
    meant = [_meaning(word, home) for word in words]
    roots = [path for path in meant if isinstance(path, Path)]
    patterns = [pattern for pattern in meant if isinstance(pattern, str)]
    cases: list[Case] = []
    mistakes: list[HarnessError] = []
    if patterns or not roots:
        own = load_corpus([home])
        if own.mistakes and not own.cases:
            raise own.mistakes[0]
        mistakes += own.mistakes
        try:
            cases += select_cases(own.cases, patterns)
        except HarnessError as error:  # it may be missing because it could not be read
            raise HarnessErrors((error, *mistakes)) from error
    if roots:
        given = load_corpus(roots)
        mistakes += given.mistakes
        known = {case.id: case for case in cases}
        for case in given.cases:
            if case.id in known:
                msg = f"the id {case.id!r} is already that of {known[case.id].file}"
                mistakes.append(HarnessError(msg, where=str(case.file), hint="rename the file"))
            else:
                cases.append(case)
    if not cases:
        raise mistakes[0]
    return tuple(sorted(cases, key=lambda case: case.id)), tuple(mistakes)


def _meaning(word: str, home: Path) -> Path | str:
    """The file or folder that a word of `--cases` names; a pattern where it names none.

    `bytecode` is the project's folder of cases even where this folder has one of that name, and a path
    into the project's own cases is the pattern of what it names: a case has one id however it is named.
    """
    path = Path(word).expanduser()
    is_pattern = not word.strip() or "*" in word or "," in word
    if is_pattern or ("/" not in word and (home / word).is_dir()):
        return word
    if path.exists():
        own = path.resolve()
        if own.is_relative_to(home.resolve()):
            below = own.relative_to(home.resolve()).as_posix()
            return "*" if below == "." else below
        return path
    if (home / word).exists():
        return word
    looks_like_path = word.endswith(".py") or path.is_absolute() or word.startswith((".", "~"))
    return path if looks_like_path else word
