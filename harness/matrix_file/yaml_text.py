"""YAML text → plain data that remembers how and where it was written.

YAML's own reading is not enough for a file of versions: it makes 3.1 of 3.10 before anybody can see it.
So the text is composed to nodes, and data is made of these here: numbers and keys keep their spelling,
days and times stay text, and each key and value has its line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

from harness.matrix_file.wording import shown

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where something stands in the data: keys of mappings and indexes of lists."""

_DEEPEST = 20
"""Levels of nesting; a matrix needs five, and a recursion limit is no way to learn of the rest."""
_TAG = "tag:yaml.org,2002:"
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,14})")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,15}\.[0-9]{0,15}")
_TRUE = frozenset({"yes", "true", "on"})


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One mistake in a file. line, column: where it stands, counted from 1."""

    line: int
    column: int
    message: str
    hint: str = ""


class UnreadableText(Exception):
    """The text is no YAML, so that only its first mistake is known."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake.message)
        self.mistake = mistake


class BareNumber(float):
    """A number with a decimal point, and how it was written: `3.10`, which is 3.1."""

    def __init__(self, text: str) -> None:
        self.text = text


class BareKey(str):
    """A key that YAML reads as a number because it stands without quotes. Equal to its spelling."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file's data. Lists are tuples; a key is a text as it was written.

    keys, values: line and column of each, counted from 1. mistakes: what YAML allows and we do not (a key
    twice, a list entry twice, tags); the data are without it.
    """

    data: object
    keys: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    values: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def place_of(self, path: KeyPath, *, key: bool = False) -> tuple[int, int]:
        """Line and column of the value at `path` (of its key, if asked), or of what it would stand in."""
        if key and path in self.keys:
            return self.keys[path]
        if path in self.values:
            return self.values[path]
        return self.place_of(path[:-1], key=True) if path else (1, 1)


class _Loader(yaml.SafeLoader):
    """Composes nodes, without aliases and without endless depth."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # PyYAML's stubs
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(None, None, _ALIAS, mark)
        if self.depth >= _DEEPEST:
            problem = f"nested more than {_DEEPEST} levels deep"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


_ALIAS = "an alias refers to another part of the file, and a matrix repeats nothing"


def parse(text: str) -> Document:
    """The data of a YAML text, whatever it says.

    Raises: UnreadableText when it is not one document of YAML.
    """
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = before.count("\n") + 1, error.position - before.rfind("\n")
        message = f"not valid YAML: the character {shown(text[error.position])} is not allowed"
        raise UnreadableText(Mistake(*place, message)) from None
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise UnreadableText(_told(error)) from None
    except (ValueError, OverflowError, IndexError, AttributeError, TypeError):
        # PyYAML converts escapes ("\U99999999") and directives without a look at what they hold.
        message = "not valid YAML: no character or number is written like this"
        raise UnreadableText(Mistake(loader.line + 1, loader.column + 1, message)) from None
    finally:
        loader.dispose()
    document = _Walk()
    data = document.data_of(node, ()) if node is not None else None
    return Document(
        data=data, keys=document.keys, values=document.values, mistakes=document.mistakes
    )


_SENTENCES = (
    ("<block end>, but found '<block", "this is indented differently from what it belongs to"),
    ("<block end>, but found '-'", "this is indented differently from what it belongs to"),
    ("<block end>", "this does not belong here: a quote or a bracket may be missing before it"),
    ("<document start>", "this is indented differently from what it belongs to"),
    ("another document", "a second document begins here, and a file is one"),
    ("expected ',' or ']'", "a list that begins with [ needs a comma or ] here"),
    ("expected ',' or '}'", "a mapping that begins with { needs a comma or } here"),
    ("find expected ':'", "a key needs a colon and a space behind it"),
    ("mapping values are not", "a colon stands where no key can be"),
    ("expected the node content", "a value is missing here"),
    ("end of stream", "the file ends inside of quotes"),
)
"""Part of what PyYAML says, and the same for somebody who writes a file rather than a parser."""


def _told(error: yaml.MarkedYAMLError) -> Mistake:
    """PyYAML's error as one sentence, with the place at which it was seen."""
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    problem = error.problem or "this cannot be read"
    hint = ""
    if problem == _ALIAS or "alias" in f"{error.context} {problem}":
        problem, mark = _ALIAS, error.context_mark or mark
        hint = 'a text that begins with * is written in quotes: "*"'
    elif "'\\t'" in problem:
        problem = "a tab stands where only spaces can"
        hint = "indent with spaces"
    elif "cannot start any token" in problem:
        character = problem.removeprefix("found character ").partition(" that cannot")[0]
        problem = f"{character} cannot begin a text"
        hint = "put the text in quotes"
    elif error.context_mark and error.context_mark.line + 1 != line:
        hint = f"look at what begins on line {error.context_mark.line + 1}"
    for fragment, sentence in _SENTENCES:
        if fragment in problem:
            problem = sentence
            break
    column = mark.column + 1 if mark else 1
    return Mistake(line, column, f"not valid YAML: {problem}", hint)


class _Walk:
    """Turns nodes into data, and notes places and mistakes on the way."""

    def __init__(self) -> None:
        self.keys: dict[KeyPath, tuple[int, int]] = {}
        self.values: dict[KeyPath, tuple[int, int]] = {}
        self.mistakes: list[Mistake] = []

    def data_of(self, node: yaml.Node, path: KeyPath) -> object:
        self.values[path] = _place(node)
        if isinstance(node, yaml.MappingNode):
            self._expect_tag(node, "map")
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            self._expect_tag(node, "seq")
            return self._list(node, path)
        return self._scalar(node)

    def _note(self, node: yaml.Node, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(*_place(node), message, hint))

    def _expect_tag(self, node: yaml.Node, *known: str) -> None:
        if node.tag.removeprefix(_TAG) not in known:
            short = node.tag.replace(_TAG, "!!")
            self._note(node, f"the tag {shown(short)} means nothing here", "leave it out")

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, object]:
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(key_node, "a key is a text, and this one is a list or a mapping")
                continue
            key = self._key(key_node)
            inner = (*path, str(key))
            if key in data:
                line = self.keys[inner][0]
                message = f"the key {shown(key)} stands here a second time"
                self._note(key_node, message, f"it stands first on line {line}")
                continue
            self.keys[inner] = _place(key_node)
            data[key] = self.data_of(value_node, inner)
        return data

    def _key(self, node: yaml.ScalarNode) -> str:
        self._check_characters(node)
        text: str = node.value
        kind = node.tag.removeprefix(_TAG)
        is_number = kind in ("int", "float") and (
            _WHOLE.fullmatch(text) or _DECIMAL.fullmatch(text)
        )
        return BareKey(text) if is_number else text

    def _list(self, node: yaml.SequenceNode, path: KeyPath) -> tuple[object, ...]:
        first: dict[str, int] = {}
        for entry in node.value:
            if not isinstance(entry, yaml.ScalarNode):
                continue
            if entry.value in first:
                message = f"{shown(entry.value)} stands in this list a second time"
                self._note(entry, message, f"it stands first on line {first[entry.value]}")
            else:
                first[entry.value] = entry.start_mark.line + 1
        return tuple(self.data_of(entry, (*path, i)) for i, entry in enumerate(node.value))

    def _scalar(self, node: yaml.Node) -> object:
        self._expect_tag(node, "str", "int", "float", "bool", "null", "timestamp", "value", "merge")
        self._check_characters(node)
        text: str = node.value
        kind = node.tag.removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in _TRUE
        # 1_000, 0x1F, 1:30 and the like are numbers to YAML 1.1 alone: here they stay text.
        if kind == "int" and _WHOLE.fullmatch(text):
            return int(text)
        if kind == "float" and _DECIMAL.fullmatch(text):
            return BareNumber(text)
        return text

    def _check_characters(self, node: yaml.Node) -> None:
        if any("\ud800" <= character <= "\udfff" for character in node.value):
            message = f"not valid YAML: {shown(node.value)} holds half of a character"
            raise UnreadableText(Mistake(*_place(node), message, "write the character itself"))


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
