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
_PACKAGES = re.compile(r"(?:[A-Za-z]:)?[/\\][^\s\"'`:;,<>]*site-packages[/\\]")
_LIBRARY = re.compile(r"(?:[A-Za-z]:)?[/\\][^\s\"'`:;,<>]*[/\\]lib[/\\](python3\.\d+[/\\])")


def cleaner(request: dict[str, Any]) -> list[tuple[str, str]]:
    """What is replaced by what in the texts of one probe, the longest first."""
    pairs = {
        request["file"]: f"{request['case']}.py",
        request.get("root", ""): "<probe>",
        tempfile.gettempdir(): "<tmp>",
        sys.prefix: "<environment>",
        sys.base_prefix: "<python>",
        os.path.expanduser("~"): "~",
    }
    real = {os.path.realpath(text): name for text, name in pairs.items() if text}
    both = {**real, **pairs}
    return sorted(((t, n) for t, n in both.items() if len(t) > 3), key=lambda pair: -len(pair[0]))


def clean(value: Any, pairs: list[tuple[str, str]]) -> Any:
    """`value` with every text in it cleaned; containers are rebuilt, all else is returned as it is."""
    if isinstance(value, str):
        value = _LIBRARY.sub(r"\1", _PACKAGES.sub("", value))
        for text, name in pairs:
            value = value.replace(text, name)
        return _ADDRESS.sub("0x…", value)
    if isinstance(value, dict):
        return {key: clean(item, pairs) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item, pairs) for item in value]
    return value
