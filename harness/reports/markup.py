"""Writing what is not ours into Markdown and into GitHub's workflow commands, without it acting there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.reports.plain import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PLAIN_CODE = re.compile(r"[^`|\\\n]+")
_NOT_LITERAL = re.compile(r"[^\w \-.,:/()=+]|_")
_SPECIAL = re.compile(r"[*_\[\]~`#!&<>|\\]")
_ACTING = re.compile(r"@(?=\w)|(?<=#)(?=\d)|(?<=GH-)(?=\d)")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\\": "&#92;"}
_TICKED = re.compile(r"``(.+?)``")

ZERO_WIDTH_SPACE = "\u200b"
"""Stands between `@` and a name, and before an issue's number, so that GitHub tells nobody."""


def prose(text: str) -> str:
    """The text as plain words of one Markdown line, fit for a table's cell as well.

    Nothing in it formats, links, mentions a person or refers to an issue. What stands between double
    backticks, as docstrings write it, becomes a code span.
    """
    text = " ".join(clean(text).split())
    parts = _TICKED.split(text)
    return "".join(code(part) if index % 2 else _words(part) for index, part in enumerate(parts))


def _words(text: str) -> str:
    text = _ACTING.sub(lambda match: match[0] + ZERO_WIDTH_SPACE, text)
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match[0], f"\\{match[0]}"), text)


def code(text: str) -> str:
    """The text as a code span on one line, fit for a table's cell as well; "" for none.

    GitHub looks for no mention and no issue within code. Where a backtick, a pipe or a backslash could end
    the span or the cell, an HTML element with entities stands for it: nothing in that acts either.
    """
    text = " ".join(clean(text).split())
    if not text:
        return ""
    if _PLAIN_CODE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{_NOT_LITERAL.sub(lambda match: f'&#{ord(match[0])};', text)}</code>"


def block(text: str) -> str:
    """The text, already cut, as a fenced block whose fence no line of it can end."""
    text = clean(text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a pipe table; every cell is Markdown already."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines.extend(f"| {' | '.join(row)} |" for row in rows)
    return lines


def command(level: str, message: str, *, title: str = "") -> str:
    """One workflow command (`::error title=…::…`) on one line, escaped as the runner undoes it.

    level: `error`, `warning` or `notice`.
    """
    escaped = clean(message).replace("%", "%25").replace("\n", "%0A")
    if not title:
        return f"::{level}::{escaped}"
    name = clean(title).replace("%", "%25").replace("\n", "%0A")
    name = name.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{escaped}"
