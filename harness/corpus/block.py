"""The `# /// case` block: TOML behind `# `, in the manner of PEP 723."""

from __future__ import annotations

import importlib
import importlib.util
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.matrix_file.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.corpus.model import Mistakes

# By its name, so that a type checker for either Python is content: tomllib came with 3.11.
_TOML: Any = importlib.import_module("tomllib" if importlib.util.find_spec("tomllib") else "tomli")

KEYS = ("python", "torch", "paths", "devices", "isolation", "deadline", "source")
"""What a block may say."""

_OPENING, _CLOSING = "# /// case", "# ///"
_LIKE_OPENING = re.compile(r"#+\s*/{2,}\s*case\s*$", re.IGNORECASE)
_PLACE = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


@dataclass(slots=True)
class Block:
    """line: of its opening, 1-based; 0 where a file has none. lines: what it holds, without `# `."""

    line: int = 0
    lines: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def line_of(self, key: str) -> int:
        """The line that sets a key; the opening where it cannot be told."""
        setting = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=.\]]""")
        for number, text in enumerate(self.lines, self.line + 1):
            if setting.match(text):
                return number
        return self.line


def find_block(lines: Sequence[str], mistakes: Mistakes) -> Block | None:
    """Find the one block of a file and read it. lines: the file's, with strings blanked."""
    blocks: list[Block] = []
    for number, line in enumerate(lines, 1):
        if line.rstrip() == _OPENING:
            blocks.append(_content(number, lines[number:], mistakes))
        elif _LIKE_OPENING.match(line):
            hint = f"write exactly: {_OPENING}"
            mistakes.add(f"{line.strip()!r} opens no case block", number, hint=hint)
    for other in blocks[1:]:
        message = f"a second case block, after that of line {blocks[0].line}"
        mistakes.add(message, other.line, hint="a case has one block; put everything in it")
    if not blocks:
        return None
    _parse(blocks[0], mistakes)
    return blocks[0]


def _content(opening: int, lines: Sequence[str], mistakes: Mistakes) -> Block:
    """What stands between the block's first line, `opening`, and its last."""
    content: list[str] = []
    for line in lines:
        if line.rstrip() == _CLOSING:
            return Block(opening, content)
        if line.rstrip() != "#" and not line.startswith("# "):
            break
        content.append(line[2:])
    hint = f"end it with the line `{_CLOSING}`; every line before that begins with `# `"
    mistakes.add("the case block is not closed", opening, hint=hint)
    return Block(opening)


def _parse(block: Block, mistakes: Mistakes) -> None:
    try:
        block.values = _TOML.loads("\n".join(block.lines))
    except (ValueError, RecursionError) as error:
        place = _PLACE.search(str(error))
        told = _PLACE.sub("", str(error))
        line, column = block.line + len(block.lines), 0
        if place is not None and place["line"]:
            line, column = block.line + int(place["line"]), len("# ") + int(place["column"])
        message = f"the case block is not TOML: {told[:1].lower()}{told[1:]}"
        hint = 'a line reads: # key = "text", or = a number, or = [a list]'
        mistakes.add(message, line, column=column, hint=hint)
    for key in sorted(block.values.keys() - set(KEYS)):
        hint = suggestion(key, KEYS, f"there are: {', '.join(KEYS)}")
        mistakes.add(f"unknown key {key!r}", block.line_of(key), hint=hint)
