"""The baseline: what each probe is known to show, in one small file for each case.

A file holds, for each path and cell, a verdict and its cause (`error python-unsupported`). `full` is
written down too: only so can its loss be seen. The files are sorted, so that their history can be read,
and one to a case, so that merging two branches rarely brings two changes to one file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from harness.errors import ExitStatus, HarnessError, HarnessErrors
from harness.matrix_file.wording import kind_of, shown, suggestion
from harness.matrix_file.yaml_text import BareKey, Document, Mistake, UnreadableText, parse
from harness.results import Cause, Expectation, Standing, Verdict
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from pathlib import Path

    from harness.results import Findings

Expected: TypeAlias = dict[str, dict[str, Expectation]]
"""What is expected of one case: path → cell → expectation."""

_UNKNOWN = Expectation()
_RANKS = {
    Verdict.FULL: 4,
    Verdict.PARTIAL: 3,
    Verdict.UNCOMPILED: 2,
    **dict.fromkeys((Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY), 1),
    Verdict.WRONG: 0,
}
"""How good a verdict is for who compiles. Those that say nothing of the compiler have no rank."""
_VERDICTS = tuple(verdict.value for verdict in Verdict if verdict.is_probed)
_CAUSES = tuple(cause.value for cause in Cause)
_PLAIN = re.compile(r"\d+\.\d+-\d+\.\d+[A-Za-z0-9.+_-]*")
_EXAMPLE = "a line reads: 3.12-2.4: partial, or: 3.11-2.0: error python-unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What is known of the probes, by case. An empty one expects nothing."""

    cases: Mapping[str, Expected] = field(default_factory=dict)

    def expectation(self, case: str, path: str, cell: str) -> Expectation:
        """What is expected of one probe; an expectation without a verdict where nothing is known."""
        return self.cases.get(case, {}).get(path, {}).get(cell, _UNKNOWN)


def stand(verdict: Verdict, cause: Cause | None, expectation: Expectation) -> Standing:
    """A result against what is expected of it; the first line that fits counts.

    | found                    | expected              | standing |
    |--------------------------|-----------------------|----------|
    | not-run, unavailable     | anything              | expected |
    | full, partial            | nothing known         | expected |
    | any other                | nothing known         | new      |
    | the same verdict         | same cause, or none   | expected |
    | the same verdict         | another cause         | changed  |
    | invalid                  | any other             | changed  |
    | any other                | invalid               | changed  |
    | one that ranks higher    | one that ranks lower  | better   |
    | one that ranks lower     | one that ranks higher | worse    |
    | any                      | another of its rank   | changed  |

    Ranks, from the best: full; partial; uncompiled; error, crash, timeout and out-of-memory; wrong.
    """
    known = expectation.verdict
    if not verdict.is_probed:
        return Standing.EXPECTED
    if known is None or not known.is_probed:
        return Standing.EXPECTED if verdict.works else Standing.NEW
    if verdict is known:
        is_same = expectation.cause is None or cause is expectation.cause
        return Standing.EXPECTED if is_same else Standing.CHANGED
    found_rank, known_rank = _RANKS.get(verdict), _RANKS.get(known)
    if found_rank is None or known_rank is None or found_rank == known_rank:
        return Standing.CHANGED
    return Standing.BETTER if found_rank > known_rank else Standing.WORSE


def load_baseline(directory: Path) -> Baseline:
    """Read `<case id>.yaml` of every case below a folder; no folder is an empty baseline.

    Raises: HarnessErrors with every mistake and its place.
    """
    cases: dict[str, Expected] = {}
    mistakes: list[HarnessError] = []
    if directory.exists() and not directory.is_dir():
        message = "a baseline is a folder, and this is a file"
        mistakes.append(HarnessError(message, where=str(directory)))
    try:
        for file in sorted(directory.rglob("*")):
            if file.suffix in (".yaml", ".yml") and file.is_file():
                case = file.relative_to(directory).with_suffix("").as_posix()
                cases[case] = _read(file, mistakes)
    except OSError as error:
        where = str(error.filename or directory)
        mistakes.append(HarnessError(f"cannot be read: {error.strerror}", where=where))
    if mistakes:
        raise HarnessErrors(tuple(mistakes))
    return Baseline(cases=cases)


def write_baseline(directory: Path, findings: Findings) -> tuple[Path, ...]:
    """Accept what was found: from now on it is what is expected. Returns the files that changed.

    What was not probed changes nothing: neither other cells of a case nor other cases are forgotten. A
    file in which nothing changes keeps its bytes; each other one is replaced as a whole.
    Raises: HarnessErrors when the baseline that stands there cannot be read (nothing is written then);
    HarnessError (our fault) when the disk is full.
    """
    standing = load_baseline(directory).cases
    accepted: dict[str, Expected] = {}
    for result in findings.results:
        if result.verdict.is_probed:
            found = Expectation(verdict=result.verdict, cause=result.cause)
            accepted.setdefault(result.case, {}).setdefault(result.path, {})[result.cell] = found
    changed: list[Path] = []
    for case, found_paths in sorted(accepted.items()):
        before = standing.get(case, {})
        after = {path: dict(cells) for path, cells in before.items()}
        for path, cells in found_paths.items():
            after.setdefault(path, {}).update(cells)
        if after != before:
            file = _file_of(directory, case)
            _replace(file, render(case, after))
            changed.append(file)
    return tuple(changed)


def render(case: str, expected: Expected) -> str:
    """The text of a case's file. Versions in it are sorted as versions: 3.9 before 3.10."""
    lines = [f"# expected results of {case}; written by: compile-matrix run --accept"]
    for path, cells in sorted(expected.items()):
        if not cells:
            continue
        lines.append(f"{path}:")
        for cell, expectation in sorted(cells.items(), key=lambda item: _as_versions(item[0])):
            names = (expectation.verdict, expectation.cause)
            value = " ".join(name.value for name in names if name is not None)
            lines.append(f"  {cell if _PLAIN.fullmatch(cell) else json.dumps(cell)}: {value}")
    return "\n".join(lines) + "\n"


def _as_versions(cell: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", cell)
    ]


def _file_of(directory: Path, case: str) -> Path:
    """Where a case's file stands. Ids come from journals, which may come from anywhere."""
    if not re.fullmatch(r"[A-Za-z0-9_./-]+", case) or {"", ".", ".."} & set(case.split("/")):
        message = f"the case id {shown(case)} names no file below {directory}"
        raise HarnessError(message, hint="judge journals of your own runs alone")
    return directory / f"{case}.yaml"


def _replace(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        message = f"cannot be written: {error.strerror}"
        hint = "what stood there is unchanged; mend that and accept once more"
        status = ExitStatus.OUR_FAULT
        raise HarnessError(message, where=str(file), hint=hint, status=status) from error


def _read(file: Path, mistakes: list[HarnessError]) -> Expected:
    if file.suffix == ".yml":
        hint = f"rename it to {file.stem}.yaml"
        mistakes.append(HarnessError("a baseline ends in .yaml", where=str(file), hint=hint))
        return {}
    expected: Expected = {}
    try:
        document = parse(file.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        message, hint = "the file is not UTF-8", "save it as UTF-8"
        mistakes.append(HarnessError(message, where=str(file), hint=hint))
        return {}
    except UnreadableText as error:
        found = [error.mistake]
    else:
        found = document.mistakes
        expected = _expected(document, found)
    for one in sorted(found):
        where = f"{file}:{one.line}:{one.column}"
        mistakes.append(HarnessError(one.message, where=where, hint=one.hint))
    return expected


def _expected(document: Document, found: list[Mistake]) -> Expected:
    """What a file says as far as it is right; `found` gets the rest."""
    data = document.data
    if not isinstance(data, dict):
        message = f"the file is {kind_of(data)}, not a mapping of paths"
        found.append(Mistake(*document.place_of(()), message, _EXAMPLE))
        return {}
    expected: Expected = {}
    for path, cells in data.items():
        if path not in PATHS:
            hint = suggestion(path, tuple(PATHS), f"there are: {', '.join(PATHS)}")
            place = document.place_of((path,), key=True)
            found.append(Mistake(*place, f"unknown path {shown(path)}", hint))
        elif not isinstance(cells, dict):
            message = f"{path} is {kind_of(cells)}, not a mapping of cells"
            found.append(Mistake(*document.place_of((path,)), message, _EXAMPLE))
        else:
            expected[path] = {}
            for cell, value in cells.items():
                if isinstance(cell, BareKey):
                    place = document.place_of((path, cell), key=True)
                    message = f"{cell} is a number, not the id of a cell"
                    found.append(Mistake(*place, message, _EXAMPLE))
                place = document.place_of((path, cell))
                expected[path][cell] = _expectation(value, place, found)
    return expected


def _expectation(value: object, place: tuple[int, int], found: list[Mistake]) -> Expectation:
    words = value.split() if isinstance(value, str) else []
    if not 1 <= len(words) <= 2:
        said = f"{shown(value)} is" if isinstance(value, str) else f"this is {kind_of(value)},"
        message = f"{said} not a verdict with or without its cause"
        found.append(Mistake(*place, message, _EXAMPLE))
        return _UNKNOWN
    verdict, cause = words[0], words[1] if len(words) == 2 else None
    if verdict not in _VERDICTS:
        hint = suggestion(verdict, _VERDICTS, f"what a probe can show: {', '.join(_VERDICTS)}")
        found.append(Mistake(*place, f"unknown verdict {shown(verdict)}", hint))
        return _UNKNOWN
    if cause is not None and cause not in _CAUSES:
        hint = suggestion(cause, _CAUSES, f"there are: {', '.join(_CAUSES)}")
        found.append(Mistake(*place, f"unknown cause {shown(cause)}", hint))
        return _UNKNOWN
    return Expectation(verdict=Verdict(verdict), cause=None if cause is None else Cause(cause))
