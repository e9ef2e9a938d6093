"""How a message shows what a user wrote."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 60
"""Characters of a user's text that a sentence can carry."""


def shown(text: str, *, longest: int | None = _LONGEST) -> str:
    """The text in quotes, on one line, cut when longer; what cannot be printed is escaped."""
    cut = text if longest is None or len(text) <= longest else f"{text[:longest]}…"
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut) + '"'


def named(text: str) -> str:
    """The text as it is where it reads as a word (`2.4`, `quick`), else as `shown`."""
    return text if re.fullmatch(r"[\w.-]{1,40}", text) else shown(text)


def kind_of(value: object) -> str:
    """What a value of a YAML file is, for `must be a text, not …`."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (tuple, list)):
        return "a list"
    return "a text"


def listed(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`; `none` for no words."""
    *rest, last = tuple(words) or ("none",)
    return f"{', '.join(rest)} and {last}" if rest else last


def near_misses(word: str, known: Sequence[str]) -> tuple[str, ...]:
    """The known words that this one may be a slip of, the nearest first, three at most."""
    exact = [one for one in known if one.lower() == word.lower()]
    return tuple(exact or difflib.get_close_matches(word[:100], known, n=3, cutoff=0.6))


def suggestion(word: str, known: Sequence[str], otherwise: str = "") -> str:
    """`did you mean …?` when a known word is near, else `otherwise`."""
    near = near_misses(word, known)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
