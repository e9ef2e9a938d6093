"""Python source as text: its docstring, and what it defines at column 0, without parsing it.

Strings and comments are told from code by their quotes alone, which is the same in every release of
Python; so a file in the syntax of a later one is read all the same.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

_LEADING = re.compile(r"(?:\s+|#[^\n]*(?:\n|\Z))*")
_STRING = (
    r"(?P<triple>\"{3}|'{3})(?:[^\\]|\\.)*?(?P=triple)"
    r"|(?P<single>[\"'])(?:[^\\\n]|\\.)*?(?P=single)"
)
_STRING_OR_COMMENT = re.compile(rf"(?P<comment>#[^\n]*)|{_STRING}", re.DOTALL)
_DOCSTRING = re.compile(rf"(?P<prefix>[rRuU]?)(?P<string>{_STRING})[ \t]*(?=[;#\n]|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(\n|[\\'\"nt])")
_ESCAPED = {"\n": "", "n": "\n", "t": "\t"}
_URL = re.compile(r"https?://[^\s<>\"'`\[\]{}]+")

_NAMES = "run|inputs|check"
_DEFINITION = re.compile(
    rf"^(?:(?P<coroutine>async[ \t]+)?def[ \t]+(?P<function>{_NAMES})\b"
    rf"|(?P<variable>{_NAMES})[ \t]*(?::[^=\n]*)?=(?!=))",
    re.MULTILINE,
)


class NotSourceError(Exception):
    """The bytes of a file are no Python source. line, column: 1-based, 0 where there is none."""

    def __init__(self, message: str, line: int, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One of the names `run`, `inputs`, `check`, as the file first gives it a meaning at column 0.

    is_used: the file's own code mentions the name elsewhere.
    """

    name: str
    line: int
    is_function: bool
    is_coroutine: bool
    is_used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A file taken apart. docstring: "" where there is none. lines: with strings blanked."""

    docstring: str
    lines: tuple[str, ...]
    definitions: tuple[Definition, ...]


def decode(data: bytes) -> str:
    """The text of a source file as Python itself reads it: UTF-8, unless it declares another encoding.

    Raises: NotSourceError.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        raise _why_not_decoded(data) from None
    if "\0" in text:
        message = "a null byte: this is no Python file"
        raise NotSourceError(message, text.count("\n", 0, text.index("\0")) + 1)
    return text


def scan(text: str) -> Scan:
    """Take a file apart; whatever it holds, this raises nothing."""
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    outside = _STRING_OR_COMMENT.sub(_without_string, source)
    return Scan(
        docstring=_docstring(source),
        lines=tuple(outside.split("\n")),
        definitions=_definitions(re.sub(r"#[^\n]*", "", outside)),
    )


def urls_in(text: str) -> tuple[str, ...]:
    """The web addresses in a text, in order, each once."""
    return tuple(dict.fromkeys(_without_sentence(url) for url in _URL.findall(text)))


def is_url(text: str) -> bool:
    """Whether a text begins as a web address does."""
    return _URL.match(text) is not None


def _why_not_decoded(data: bytes) -> NotSourceError:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        return NotSourceError(f"byte 0x{data[error.start]:02x} is not UTF-8", line, column)
    return NotSourceError("it declares an encoding in which it cannot be read", 1)


def _without_sentence(url: str) -> str:
    """The address without what ends the sentence or the brackets around it."""
    url = url.rstrip(".,;:!?")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?")
    return url


def _without_string(found: re.Match[str]) -> str:
    """A comment as it is; a string as blanks, on as many lines."""
    return found[0] if found["comment"] else re.sub(r"[^\n]", " ", found[0])


def _docstring(source: str) -> str:
    leading = _LEADING.match(source)
    found = _DOCSTRING.match(source, leading.end() if leading else 0)
    if found is None:
        return ""
    quotes = len(found["triple"] or found["single"])
    inner = found["string"][quotes:-quotes]
    if found["prefix"] in ("r", "R"):
        return inner
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), inner)


def _definitions(code: str) -> tuple[Definition, ...]:
    """code: the file without strings and comments."""
    elsewhere = _DEFINITION.sub("", code)
    first: dict[str, Definition] = {}
    for found in _DEFINITION.finditer(code):
        name = found["function"] or found["variable"]
        used = re.search(rf"(?<![\w.]){name}\b(?!\s*=[^=])", elsewhere)
        definition = Definition(
            name=name,
            line=code.count("\n", 0, found.start()) + 1,
            is_function=found["function"] is not None,
            is_coroutine=found["coroutine"] is not None,
            is_used=used is not None,
        )
        first.setdefault(name, definition)
    return tuple(first.values())
