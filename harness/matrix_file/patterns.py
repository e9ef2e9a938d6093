"""The words in which cells are chosen: `3.12-2.4`, `3.13-*-cuda`, `newest-today`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from harness.errors import HarnessError
from harness.matrix_file.wording import shown

PLATFORMS = ("linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-amd64")
"""Every platform that has wheels of torch; the first one needs no suffix in an id."""

NEWEST = "newest"
_WILD = re.compile(r"[*?\[]")
_EXAMPLES = "write <python>-<torch>, such as 3.12-2.4, 3.12-*, *-2.4.0, *-cuda or newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which cells are meant.

    text: as written. python, torch: fnmatch patterns over minor versions and series, or exact versions;
    both empty for `newest`. era: `adopted` cells have no pattern. platform: empty when any will do.
    """

    text: str
    python: str
    torch: str
    device: Literal["cpu", "cuda"]
    era: Literal["release", "today"]
    platform: str

    @property
    def is_newest(self) -> bool:
        return not self.torch

    @property
    def is_exact(self) -> bool:
        """Whether it names one cell rather than describing some."""
        return not self.is_newest and not _WILD.search(self.python + self.torch)


def parse_pattern(text: str) -> Pattern:
    """Read one pattern, whether or not any cell matches it.

    Raises: HarnessError when it is not written like a pattern.
    """
    rest, platform = _cut_platform(text)
    rest, is_today = _cut(rest, "-today")
    rest, is_cuda = _cut(rest, "-cuda")
    if rest == NEWEST:
        python = torch = ""
    elif rest == "*":
        python = torch = "*"
    else:
        parts = _split(rest)
        if len(parts) != 2 or not all(parts) or any(c.isspace() for c in rest):
            message = f"{shown(text)} does not name cells"
            raise HarnessError(message, hint=_hint(text))
        python, torch = parts
    return Pattern(
        text=text,
        python=python,
        torch=torch,
        device="cuda" if is_cuda else "cpu",
        era="today" if is_today else "release",
        platform=platform,
    )


def _hint(text: str) -> str:
    if text.endswith("-today-cuda"):
        return "the order is <python>-<torch>-cuda-today"
    if re.fullmatch(r"3\.\d+", text):
        return f"all torches on Python {text} are {text}-*"
    if re.fullmatch(r"2\.\d+(\.\d+)?", text):
        return f"torch {text} on all Pythons is *-{text}"
    return _EXAMPLES


def _cut(text: str, suffix: str) -> tuple[str, bool]:
    return text.removesuffix(suffix), text.endswith(suffix)


def _cut_platform(text: str) -> tuple[str, str]:
    for platform in PLATFORMS:
        if text.endswith(f"-{platform}"):
            return text.removesuffix(f"-{platform}"), platform
    return text, ""


def _split(text: str) -> list[str]:
    """Cut at each `-` outside of brackets: `3.1[0-2]-2.*` has two parts."""
    parts, is_inside = [""], False
    for character in text:
        if character == "-" and not is_inside:
            parts.append("")
            continue
        is_inside = character == "[" or (is_inside and character != "]")
        parts[-1] += character
    return parts
