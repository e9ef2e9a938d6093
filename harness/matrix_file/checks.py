"""What only shows when several parts of a matrix.yaml are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from harness.matrix_file.models import DEFAULT_DEADLINE
from harness.matrix_file.wording import listed, shown, suggestion
from harness.matrix_file.yaml_text import Mistake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.matrix_file.models import MatrixFile, SeriesFacts
    from harness.matrix_file.yaml_text import Document, KeyPath


def check_cells(file: MatrixFile, document: Document, unsound: frozenset[str]) -> list[Mistake]:
    """What does not fit together in the sections that cells are made of.

    unsound: the sections that are incomplete in `file`, to which nothing is compared.
    """
    checks = _Checks(file, document, unsound)
    return [*checks.pythons(), *checks.platforms(), *checks.torch()]


def check_rest(file: MatrixFile, document: Document) -> list[Mistake]:
    """What is missing in the other sections."""
    return list(_Checks(file, document, frozenset()).rest())


def wheels_of(file: MatrixFile, series: str, platform: str) -> tuple[str, ...]:
    """The Pythons that a series has wheels for on a platform, in the order of the file."""
    facts, until = file.torch[series], file.platforms[platform].until
    if platform in facts.except_:
        return facts.except_[platform]
    if until is not None and Version(series) > Version(until):
        return ()
    return facts.pythons


class _Checks:
    def __init__(self, file: MatrixFile, document: Document, unsound: frozenset[str]) -> None:
        self.file = file
        self.document = document
        self.unsound = unsound
        self.known = (*file.pythons.always, *file.pythons.only_if_found)

    def _at(self, path: KeyPath, message: str, hint: str = "", *, key: bool = False) -> Mistake:
        return Mistake(*self.document.place_of(path, key=key), message, hint)

    def pythons(self) -> Iterator[Mistake]:
        if "pythons" in self.unsound:
            return
        always = self.file.pythons.always
        for i, python in enumerate(self.file.pythons.only_if_found):
            if python in always:
                path = ("pythons", "only_if_found", i)
                message = f"Python {python} stands under always too"
                yield self._at(path, message, "leave it out of one of them")
        if not self.known:
            yield self._at(("pythons",), "no Python is listed", 'write always: ["3.12"]', key=True)
        if self.unsound & {"torch", "platforms"}:
            return
        served = {
            series: {
                python
                for platform in self.file.platforms
                for python in wheels_of(self.file, series, platform)
            }
            for series in self.file.torch
        }
        if not served or not all(served.values()):  # a mistake of its own, which leads to these
            return
        for name, listed_there in (
            ("always", always),
            ("only_if_found", self.file.pythons.only_if_found),
        ):
            for i, python in enumerate(listed_there):
                if not any(python in pythons for pythons in served.values()):
                    message = f"no torch of this file has a wheel for Python {python}"
                    hint = "leave it out, or add it to the series that serve it"
                    yield self._at(("pythons", name, i), message, hint)

    def platforms(self) -> Iterator[Mistake]:
        if "platforms" in self.unsound:
            return
        if not self.file.platforms:
            hint = "write platforms: {linux-x86_64: {}}"
            yield self._at(("platforms",), "no platform is listed", hint, key=True)
        if "torch" in self.unsound or not self.file.torch:
            return
        for platform, facts in self.file.platforms.items():
            for key, series in (("cuda_since", facts.cuda_since), ("until", facts.until)):
                if series is not None and series not in self.file.torch:
                    path = ("platforms", platform, key)
                    known = tuple(self.file.torch)
                    hint = suggestion(series, known, f"the series are {listed(known)}")
                    yield self._at(path, f"there is no series {shown(series)} under torch", hint)

    def torch(self) -> Iterator[Mistake]:
        if not self.file.torch and "torch" not in self.unsound:
            yield self._at(("torch",), "no series of torch is listed", key=True)
        for series, facts in self.file.torch.items():
            yield from self._patches(series, facts)
            yield from self._wheels(series, facts)

    def _patches(self, series: str, facts: SeriesFacts) -> Iterator[Mistake]:
        at: KeyPath = ("torch", series)
        for patch in facts.patches:
            if not patch.startswith(f"{series}."):
                right = ".".join(patch.split(".")[:2])
                hint = f"it belongs under {right}"
                yield self._at(
                    (*at, "patches", patch), f"{patch} is no patch of {series}", hint, key=True
                )
        if facts.default not in facts.patches:
            hint = f"the patches are {listed(facts.patches)}; add it there if it exists"
            message = f"the default patch {facts.default} is not among the patches, so has no wheel"
            yield self._at((*at, "default"), message, hint)
        for patch, day in facts.patches.items():
            if facts.as_of[:10] <= day:
                message = f"as_of is not after {day}, the day of {patch}: nothing would be found"
                hint = "choose a day some weeks after the last patch"
                yield self._at((*at, "as_of"), message, hint)
                break

    def _wheels(self, series: str, facts: SeriesFacts) -> Iterator[Mistake]:
        at: KeyPath = ("torch", series)
        lists: list[tuple[KeyPath, tuple[str, ...]]] = [((*at, "pythons"), facts.pythons)]
        for platform, pythons in facts.except_.items():
            path = (*at, "except", platform)
            lists.append((path, pythons))
            if "platforms" in self.unsound:
                continue
            if platform not in self.file.platforms:
                hint = "add it there, or leave it out here"
                message = f"{platform} is not listed under platforms"
                yield self._at(path, message, hint, key=True)
            elif sorted(pythons) == sorted(facts.pythons):
                until = self.file.platforms[platform].until
                if until is None or Version(series) <= Version(until):
                    message = f"{platform} is no exception: `pythons` says the same"
                    yield self._at(path, message, "leave it out", key=True)
        if "pythons" not in self.unsound:
            for path, pythons in lists:
                for i, python in enumerate(pythons):
                    if python not in self.known:
                        hint = "add it there, or leave it out here"
                        message = f"Python {python} is not listed under pythons"
                        yield self._at((*path, i), message, hint)
        if not any(pythons for _, pythons in lists):
            message = f"torch {facts.default} has no wheel for any Python on any platform"
            hint = "list its Pythons, or leave the series out"
            yield self._at((*at, "pythons"), message, hint)

    def rest(self) -> Iterator[Mistake]:
        if DEFAULT_DEADLINE not in self.file.limits.deadline_s:
            message = f"deadline_s lacks the key {shown(DEFAULT_DEADLINE)}"
            hint = "it is the deadline of the paths that have none of their own"
            yield self._at(("limits", "deadline_s"), message, hint, key=True)
        for name, patterns in self.file.profiles.items():
            if not patterns:
                message = f"the profile {name} is empty"
                yield self._at(("profiles", name), message, "name a cell in it, or leave it out")
