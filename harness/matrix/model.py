"""What a matrix is, and which of its cells a pattern means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError, HarnessErrors
from harness.matrix_file import DEFAULT_DEADLINE, PLATFORMS, Pattern, parse_pattern
from harness.matrix_file.wording import listed, shown, suggestion
from harness.results import NotRunReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Device(str, Enum):
    """Where the compiled code runs."""

    CPU = "cpu"
    CUDA = "cuda"


class Era(str, Enum):
    """Which day a cell's dependencies are of."""

    RELEASE = "release"
    """Some weeks after the torch: the release's `as_of`."""
    TODAY = "today"
    """What a plain install gives now."""
    ADOPTED = "adopted"
    """Whatever stands in an environment that was built elsewhere; no pattern selects these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One environment.

    python: minor version, `3.12`. torch: exact, `2.4.1`. id: short for the patch that its series means,
    `3.12-2.4`, else exact, `3.12-2.4.0`; then `-cuda`, `-today`, and the platform unless it is Linux on
    x86-64. order: place among all cells of a matrix.yaml: by platform, era, device, Python, torch.
    """

    python: str
    torch: str
    device: Device
    era: Era
    platform: str
    id: str
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """Why no environment of a cell can exist. detail: one sentence without a full stop."""

    reason: NotRunReason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """A minor version of CPython. only_if_found: it counts as the newest only where one is found."""

    version: str
    only_if_found: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One patch of torch.

    is_default: whether it is what its series means. day: when its first wheel came to PyPI
    (`2024-09-04`). as_of: UTC time up to which what it needs is resolved (`2024-10-10T00:00:00Z`).
    cuda: version of CUDA in the wheels of `cuda_platforms`. wheels: platform → Pythons, oldest first.
    """

    version: str
    series: str
    is_default: bool
    day: str
    as_of: str
    cuda: str
    cuda_platforms: tuple[str, ...]
    wheels: Mapping[str, tuple[str, ...]]

    def serves(self, python: str, device: Device, platform: str) -> bool:
        """Whether there is a wheel."""
        is_built = device is Device.CPU or platform in self.cuda_platforms
        return is_built and python in self.wheels.get(platform, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """URLs of package indexes. default: None for uv's own. cpu: for torch in CPU cells on Linux, or None."""

    default: str | None
    cpu: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a probe may take. deadlines_s: by path or first part of one, `default` for the others."""

    deadlines_s: Mapping[str, float]
    memory_bytes: int

    def deadline_s(self, path: str) -> float:
        """Seconds for a probe on this path: its own, else its family's (`inductor`), else the default."""
        family = path.partition("-")[0]
        default = self.deadlines_s[DEFAULT_DEADLINE]
        return self.deadlines_s.get(path, self.deadlines_s.get(family, default))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All that a matrix.yaml says. pythons, releases: oldest first. platforms: in a fixed order."""

    pythons: tuple[Python, ...]
    platforms: tuple[str, ...]
    releases: tuple[Release, ...]
    indexes: Indexes
    limits: Limits
    requirements_by_era: Mapping[Era, tuple[str, ...]]
    profiles: Mapping[str, tuple[str, ...]]
    file: Path

    @property
    def profile_names(self) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(self.profiles)

    def requirements(self, era: Era) -> tuple[str, ...]:
        """What an environment gets besides torch; nothing is put into an adopted one."""
        return self.requirements_by_era.get(era, ())

    def release(self, version: str) -> Release:
        """The facts of an exact patch. Raises: HarnessError when the file does not list it."""
        for release in self.releases:
            if release.version == version:
                return release
        versions = tuple(release.version for release in self.releases)
        message = f"torch {version} is not listed"
        raise HarnessError(message, where=str(self.file), hint=suggestion(version, versions))

    def why_impossible(self, cell: Cell) -> Impossible | None:
        """Why no wheel serves the cell, from what the file says; None when one does, or it is adopted.

        Raises: HarnessError when the file does not list the cell's torch.
        """
        if cell.era is Era.ADOPTED:
            return None
        release = self.release(cell.torch)
        if release.serves(cell.python, cell.device, cell.platform):
            return None
        torch, pythons = f"torch {cell.torch}", release.wheels.get(cell.platform, ())
        if not pythons:
            detail = f"{torch} has no wheel for {cell.platform}"
        elif cell.python not in pythons:
            has = f"wheels for Python {listed(pythons)} on {cell.platform}"
            detail = f"{torch} has {has}, none for {cell.python}"
        else:
            detail = f"{torch} has no wheel with CUDA for {cell.platform}"
        return Impossible(reason=NotRunReason.NO_WHEEL, detail=detail)

    def cells(
        self, patterns: Sequence[str], *, platform: str, found_pythons: frozenset[str]
    ) -> tuple[Cell, ...]:
        """The cells that the patterns mean, in the order of the matrix, each once.

        Those that no wheel serves are among them. platform: where the cells stand. found_pythons: minor
        versions with an interpreter, for `newest`.
        Raises: HarnessErrors for patterns that are wrong or match no cell there.
        """
        cells: set[Cell] = set()
        errors: list[HarnessError] = []
        for text in patterns:
            try:
                pattern = parse_pattern(text)
                matched = self._matched(pattern, platform, found_pythons)
                if not matched:
                    errors.append(self._nothing(pattern, platform))
                cells.update(matched)
            except HarnessError as error:
                errors.append(error)
        if errors:
            raise HarnessErrors(tuple(errors))
        return _in_order(cells)

    def cells_anywhere(self, pattern: Pattern) -> tuple[Cell, ...]:
        """The cells of all platforms that a pattern means where every Python is found.

        Raises: HarnessError when it means none.
        """
        found = frozenset(python.version for python in self.pythons)
        platforms = (pattern.platform,) if pattern.platform else self.platforms
        cells = {cell for one in platforms for cell in self._matched(pattern, one, found)}
        if not cells:
            raise self._nothing(pattern, platforms[0])
        return _in_order(cells)

    def profile(
        self, name: str, *, platform: str, found_pythons: frozenset[str]
    ) -> tuple[Cell, ...]:
        """The cells of a profile, as `cells` gives them; what it has for other platforms is left out.

        Raises: HarnessError when there is no such profile, or nothing in it for this platform.
        """
        if name not in self.profiles:
            known = f"the profiles are {listed(self.profile_names)}"
            hint = suggestion(name, self.profile_names, known)
            message = f"there is no profile {shown(name)}"
            raise HarnessError(message, where=str(self.file), hint=hint)
        cells: set[Cell] = set()
        for text in self.profiles[name]:
            cells.update(self._matched(parse_pattern(text), platform, found_pythons))
        if not cells:
            message = f"the profile {name} has no cell for {platform}"
            raise HarnessError(message, where=str(self.file))
        return _in_order(cells)

    # ---------------------------------------------------------------------------- how it is done

    def _matched(
        self, pattern: Pattern, platform: str, found_pythons: frozenset[str]
    ) -> tuple[Cell, ...]:
        if platform not in self.platforms:
            message = f"the platform {shown(platform)} is not listed"
            hint = f"the platforms are {listed(self.platforms)}"
            raise HarnessError(message, where=str(self.file), hint=hint)
        if pattern.platform not in ("", platform):
            return ()
        device, era = Device(pattern.device), Era(pattern.era)
        pairs = (
            self._newest(device, platform, found_pythons)
            if pattern.is_newest
            else self._pairs(pattern)
        )
        return tuple(self._cell(p, r, device, era, platform) for p, r in pairs)

    def _pairs(self, pattern: Pattern) -> Iterator[tuple[int, int]]:
        """Indexes of the Pythons and releases that match; an exact patch only when it is written so."""
        for p, python in enumerate(self.pythons):
            if not _fits(python.version, pattern.python):
                continue
            for r, release in enumerate(self.releases):
                if release.version == pattern.torch or (
                    release.is_default and _fits(release.series, pattern.torch)
                ):
                    yield p, r

    def _newest(
        self, device: Device, platform: str, found_pythons: frozenset[str]
    ) -> Iterator[tuple[int, int]]:
        """The newest Python that may be expected and has a wheel, with the newest torch for it."""
        for p, python in reversed(tuple(enumerate(self.pythons))):
            if python.only_if_found and python.version not in found_pythons:
                continue
            for r, release in reversed(tuple(enumerate(self.releases))):
                if release.is_default and release.serves(python.version, device, platform):
                    yield p, r
                    return

    def _cell(self, p: int, r: int, device: Device, era: Era, platform: str) -> Cell:
        python, release = self.pythons[p].version, self.releases[r]
        words = [python, release.series if release.is_default else release.version]
        words += ["cuda"] if device is Device.CUDA else []
        words += ["today"] if era is Era.TODAY else []
        words += [platform] if platform != PLATFORMS[0] else []
        order = PLATFORMS.index(platform)
        for place, size in (
            (tuple(Era).index(era), len(Era)),
            (tuple(Device).index(device), len(Device)),
            (p, len(self.pythons)),
            (r, len(self.releases)),
        ):
            order = order * size + place
        return Cell(
            python=python,
            torch=release.version,
            device=device,
            era=era,
            platform=platform,
            id="-".join(words),
            order=order,
        )

    def _nothing(self, pattern: Pattern, platform: str) -> HarnessError:
        """What to say of a pattern that matches no cell of the platform."""
        text = pattern.text
        if pattern.platform not in ("", platform):
            message = f"{shown(text)} is for another platform than this, {platform}"
            return HarnessError(message, hint="leave the platform out")
        if pattern.is_newest:
            wheel = "wheel with CUDA" if pattern.device == "cuda" else "wheel"
            return HarnessError(f"{shown(text)}: no torch has a {wheel} for {platform}")
        series = tuple(release.series for release in self.releases if release.is_default)
        pythons = tuple(python.version for python in self.pythons)
        versions = (*series, *(release.version for release in self.releases))
        has_python = any(_fits(python, pattern.python) for python in pythons)
        if not has_python:
            hint = f"the Pythons are {listed(pythons)}"
        elif "*" in pattern.torch and pattern.torch.count(".") > 1:
            hint = f"an exact patch is written out, such as {pattern.python}-{versions[-1]}"
        else:
            hint = suggestion(pattern.torch, versions, f"the torches are {listed(series)}")
        return HarnessError(f"{shown(text)} matches no cell", hint=hint)


def _fits(version: str, pattern: str) -> bool:
    try:
        return fnmatchcase(version, pattern)
    except re.error:  # [z-a], before Python 3.11  # pragma: no cover
        return False


def _in_order(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(sorted(cells, key=lambda cell: cell.order))
