"""Texts that a case, a compiler or a machine wrote, made fit to be shown anywhere.

What a probe leaves behind is not ours: it may colour a terminal, hold characters that XML forbids, reverse
the direction of the line, or be a megabyte long. Every report takes such texts through here first.
"""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles and links
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
_NEWLINE = re.compile(r"\r\n?|[\u2028\u2029\x85]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_UNENCODABLE = re.compile(r"[\ud800-\udfff\ufffe\uffff]")
_DIRECTION = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SPACE = re.compile(r"\s+")

_SLACK = 8
"""How many characters are looked at for each one that is kept: escapes and runs of spaces go away."""


def clean(text: str) -> str:
    """The text without what may not stand in XML, or would act on whoever shows it.

    Escape sequences and control characters go, save line feeds and tabs. Lone surrogates become U+FFFD.
    Characters that turn the direction of writing become visible (`\\u202e`): nothing may read otherwise
    than it is.
    """
    text = _ANSI.sub("", text)
    text = _NEWLINE.sub("\n", text)
    text = _CONTROL.sub("", text)
    text = _UNENCODABLE.sub("\ufffd", text)
    return _DIRECTION.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str, limit: int = 300) -> str:
    """The text, cleaned, on one line of at most `limit` characters; `…` ends it where it was cut."""
    line = _SPACE.sub(" ", clean(text[: limit * _SLACK])).strip()
    if len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def head(text: str, limit: int) -> str:
    """The first `limit` characters, cleaned; where more was there, a last line says how much."""
    if len(text) <= limit:
        return clean(text).strip("\n")
    return f"{clean(text[:limit])}\n[cut: {len(text) - limit:,} more characters]"


def tail(text: str, limit: int) -> str:
    """The last `limit` characters, cleaned; where more was there, a first line says how much."""
    if len(text) <= limit:
        return clean(text).strip("\n")
    return f"[cut: {len(text) - limit:,} characters before this]\n{clean(text[-limit:])}"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 probe`, `2 probes`, `1,234 probes`; the plural adds an s unless it is given."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def moment(at: str) -> str:
    """A time of the journal for people: `2026-12-01 04:00 UTC`; what is no such time stays as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:[\d.]+)?(?:Z|\+00:00)", at)
    return f"{found[1]} {found[2]} UTC" if found else one_line(at)
