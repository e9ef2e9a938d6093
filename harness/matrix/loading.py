"""A matrix.yaml → its Matrix, or all of its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from harness.errors import HarnessError
from harness.matrix.model import Era, Indexes, Limits, Matrix, Python, Release
from harness.matrix_file import PLATFORMS, Mistake, bytes_of, parse_pattern, read, wheels_of
from harness.matrix_file.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.matrix.model import Cell
    from harness.matrix_file import MatrixFile, Reading


def load_matrix(path: Path) -> Matrix:
    """Read a matrix.yaml.

    Raises: HarnessError when it cannot be read, HarnessErrors with all of its mistakes.
    """
    reading = read(path)
    if not reading.is_sound_in_cells:
        reading.raise_mistakes()
    matrix = _matrix_of(reading.file, path)
    reading.raise_mistakes(_mistakes_in_profiles(matrix, reading))
    return matrix


def _matrix_of(file: MatrixFile, path: Path) -> Matrix:
    pythons = [Python(version=one, only_if_found=False) for one in file.pythons.always]
    pythons += [Python(version=one, only_if_found=True) for one in file.pythons.only_if_found]
    platforms = tuple(one for one in PLATFORMS if one in file.platforms)
    return Matrix(
        pythons=tuple(sorted(pythons, key=lambda python: Version(python.version))),
        platforms=platforms,
        releases=tuple(
            sorted(_releases_of(file, platforms), key=lambda release: Version(release.version))
        ),
        indexes=Indexes(default=file.indexes.default, cpu=file.indexes.cpu),
        limits=Limits(
            deadlines_s=file.limits.deadline_s, memory_bytes=bytes_of(file.limits.memory)
        ),
        requirements_by_era={
            Era.RELEASE: file.requirements.release,
            Era.TODAY: file.requirements.today,
        },
        profiles=file.profiles,
        file=path,
    )


def _releases_of(file: MatrixFile, platforms: tuple[str, ...]) -> Iterator[Release]:
    for series, facts in file.torch.items():
        since = {platform: file.platforms[platform].cuda_since for platform in platforms}
        cuda_platforms = tuple(
            platform
            for platform, first in since.items()
            if first is not None and Version(series) >= Version(first)
        )
        wheels = {
            platform: tuple(sorted(wheels_of(file, series, platform), key=Version))
            for platform in platforms
        }
        for patch, day in facts.patches.items():
            yield Release(
                version=patch,
                series=series,
                is_default=patch == facts.default,
                day=day,
                as_of=facts.as_of,
                cuda=facts.cuda,
                cuda_platforms=cuda_platforms,
                wheels=wheels,
            )


def _mistakes_in_profiles(matrix: Matrix, reading: Reading) -> Iterator[Mistake]:
    """What names no cell, a cell that cannot exist anywhere, or one that the profile has already."""
    for name, texts in matrix.profiles.items():
        described: dict[str, frozenset[Cell]] = {}
        named: dict[str, tuple[Cell, ...]] = {}
        for i, text in enumerate(texts):
            if text in described or text in named:  # told of every list
                continue
            place = reading.document.place_of(("profiles", name, i))
            pattern = parse_pattern(text)
            try:
                cells = matrix.cells_anywhere(pattern)
            except HarnessError as error:
                yield Mistake(*place, error.message, error.hint)
                continue
            if pattern.is_newest:  # which cell it is depends on the machine
                continue
            if not pattern.is_exact:
                described[text] = frozenset(cells)
                continue
            why = [matrix.why_impossible(cell) for cell in cells]
            if why[0] and all(why):
                message = f"no wheel on any platform serves {shown(text)}"
                yield Mistake(*place, message, why[0].detail)
            for other, its_cells in named.items():
                if its_cells == cells:
                    message = f"{shown(text)} is the same cell as {shown(other)}"
                    yield Mistake(*place, message, "leave it out: the profile has it already")
            named[text] = cells
        for text, cells in named.items():
            for other, all_cells in described.items():
                if all_cells.issuperset(cells):
                    place = reading.document.place_of(("profiles", name, texts.index(text)))
                    message = f"{shown(text)} is one of the cells of {shown(other)}"
                    yield Mistake(*place, message, "leave it out: the profile has it already")
