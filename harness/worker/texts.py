"""Takes the machine out of what torch and cases say: folders, temporary names and addresses.

A result is compared with other runs' and published; the same failure has to read the same everywhere.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from typing import Any

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
# Where a path begins: with what a folder has been replaced by, a drive, or a separator.
_BEGIN = r"(?:<[a-z-]+>|~|[A-Za-z]:)?[/\\]"
_PACKAGES = re.compile(_BEGIN + r"[^\s\"'`:;,<>]*site-packages[/\\]+")
_LIBRARY = re.compile(_BEGIN + r"(?:[^\s\"'`:;,<>]*[/\\])?lib[/\\](python3\.\d+[/\\])")

_ABOVE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder that holds the harness; its own frames stand in every traceback."""


def cleaner(request: dict[str, Any]) -> list[tuple[str, str]]:
    """What is replaced by what in the texts of one probe, the longest first."""
    pairs = {
        request["file"]: f"{request['case']}.py",
        request.get("root", ""): "<probe>",
        _ABOVE: "<compile-matrix>",
        tempfile.gettempdir(): "<tmp>",
        sys.prefix: "<environment>",
        sys.base_prefix: "<python>",
        os.path.expanduser("~"): "~",
    }
    return replacing(pairs)


def replacing(pairs: dict[str, str]) -> list[tuple[str, str]]:
    """Folder → name, with every way in which a text may write the folder, the longest first."""
    real = {os.path.realpath(text): name for text, name in pairs.items() if text}
    both = {**real, **pairs}
    # Windows: a path in a repr has its separators doubled, and libraries write them either way.
    both.update({text.replace("\\", "\\\\"): name for text, name in both.items()})
    both.update({text.replace("\\", "/"): name for text, name in both.items() if ":\\" in text})
    return sorted(((t, n) for t, n in both.items() if len(t) > 3), key=lambda pair: -len(pair[0]))


def clean(value: Any, pairs: list[tuple[str, str]]) -> Any:
    """`value` with every text in it cleaned; containers are rebuilt, all else is returned as it is."""
    if isinstance(value, str):
        for text, name in pairs:  # the whole name of a folder: /home/a is no part of /home/ab
            value = re.sub(re.escape(text) + r"(?![\w-])", name, value)
        value = _LIBRARY.sub(r"\1", _PACKAGES.sub("", value))
        return _ADDRESS.sub("0x…", value)
    if isinstance(value, dict):
        return {key: clean(item, pairs) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, pairs) for item in value]
    return value


def text_of(error: BaseException) -> str:
    """What an exception says; "" where it cannot be turned into text."""
    try:
        return str(error)
    except BaseException:
        return ""


def headline(text: str) -> str:
    """The first line of an exception's text that says something, at most 500 characters.

    A wrapper's line (`backend='inductor' raised:`) brings the next with it; a kind of graph break (2.7 and
    later) its explanation. Where the text begins with the user's own code, it says nothing itself.
    """
    own = text.strip().partition("from user code:")[0]
    lines = [line.strip() for line in own.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith("raised:"):
        return f"{lines[0]} {lines[1]}"[:500]
    if len(lines) > 1 and lines[1].startswith("Explanation:"):
        return f"{lines[0]}: {lines[1].partition(':')[2].strip()}"[:500]
    return lines[0][:500] if lines else ""
