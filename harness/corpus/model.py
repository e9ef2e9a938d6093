"""What a case is, what a corpus is, and how a mistake in one is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.errors import HarnessError

DEVICES = ("cpu", "cuda")

SCRIPT = "script"
"""The path of a plain script, which calls torch.compile as it likes."""

Kind = Literal["run", "check", "script"]
Isolation = Literal["fork", "process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file of the corpus, and what it says of itself.

    id: its path below its corpus folder, without `.py`. title: first line of its docstring. category:
    its folder. paths: the compile paths that it is asked on. python, torch: what it needs. deadline_s:
    seconds for one probe; None: what matrix.yaml says for the path. source: URLs that its question
    comes from. text: the file. digest: sha256 of the file's bytes, in hexadecimal.
    """

    id: str
    title: str
    category: str
    kind: Kind
    paths: tuple[str, ...]
    python: SpecifierSet
    torch: SpecifierSet
    devices: tuple[str, ...]
    isolation: Isolation
    deadline_s: float | None
    source: tuple[str, ...]
    file: Path
    text: str
    digest: str

    def applies(self, python_version: str, torch_version: str) -> str:
        """Why the case cannot be asked there, in a few words (`needs Python >=3.11`), or "" if it can.

        Versions may carry a local part (`2.4.1+cpu`) or be pre-releases. One that is no version at all
        (a build of one's own) is given the benefit of the doubt.
        """
        needs = (("Python", self.python, python_version), ("torch", self.torch, torch_version))
        unmet = [f"{name} {spec}" for name, spec, version in needs if not _contains(spec, version)]
        return f"needs {' and '.join(unmet)}" if unmet else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The cases that could be read, by id, and what is wrong with those that could not."""

    cases: tuple[Case, ...]
    mistakes: tuple[HarnessError, ...]


@dataclass(slots=True)
class Mistakes:
    """What is wrong with one file, as it is found. line, column: 1-based, 0 where there is none."""

    file: Path
    found: list[tuple[int, int, HarnessError]] = field(default_factory=list)

    def add(self, message: str, line: int = 0, *, column: int = 0, hint: str = "") -> None:
        """Keep one more, and go on reading."""
        place = ":".join([str(self.file), *(str(number) for number in (line, column) if number)])
        self.found.append((line, column, HarnessError(message, where=place, hint=hint)))

    def in_order(self) -> tuple[HarnessError, ...]:
        """All of them, from the top of the file to its end."""
        return tuple(error for _, _, error in sorted(self.found, key=lambda found: found[:2]))


def _contains(specifiers: SpecifierSet, version: str) -> bool:
    try:
        return specifiers.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
