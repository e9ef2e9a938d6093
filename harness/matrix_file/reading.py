"""matrix.yaml → what is sound of it, and all its mistakes with their places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from harness.errors import HarnessError, HarnessErrors
from harness.matrix_file.checks import check_cells, check_rest
from harness.matrix_file.models import SCHEMA, MatrixFile, Slip
from harness.matrix_file.wording import kind_of, listed, named, near_misses, shown, suggestion
from harness.matrix_file.yaml_text import Document, Mistake, UnreadableText, parse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from harness.matrix_file.yaml_text import KeyPath

_LARGEST_BYTES = 1_000_000
_CELLS = frozenset({"pythons", "platforms", "torch"})
"""The sections that cells are made of."""
_BY_ENTRY = frozenset({"platforms", "torch", "profiles"})
"""The sections of which one entry may be wrong and the others still be read."""
_BEGIN = f"begin with the line: schema: {SCHEMA}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A file as far as it is sound.

    file: without the entries in which a mistake was found. name: the file in messages.
    is_sound_in_cells: whether all cells are in it, so that what names cells can be checked.
    """

    file: MatrixFile
    name: str
    document: Document
    mistakes: tuple[Mistake, ...]
    is_sound_in_cells: bool

    def raise_mistakes(self, further: Iterable[Mistake] = ()) -> None:
        """Tell these mistakes and further ones at once, in the order of their places.

        Raises: HarnessErrors, unless there is none at all.
        """
        mistakes = (*self.mistakes, *further)
        if mistakes:
            raise _failure(self.name, mistakes)


def read(path: Path) -> Reading:
    """Read a matrix.yaml as far as it goes.

    Raises: HarnessError when there is no file to read; HarnessErrors when it is no YAML, no mapping or of
    another schema. Every other mistake stands in the reading.
    """
    name = shown(str(path), longest=None)[1:-1]
    try:
        document = parse(_text_of(path, name))
    except UnreadableText as error:
        raise _failure(name, (error.mistake,)) from None
    data = document.data
    if not isinstance(data, dict):
        what = "empty" if data is None else f"{kind_of(data)} instead of a mapping"
        mistake = Mistake(*document.place_of(()), f"the file is {what}", _BEGIN)
        raise _failure(name, (mistake, *document.mistakes))
    schema = data.get("schema", SCHEMA)
    if isinstance(schema, int) and not isinstance(schema, bool) and schema != SCHEMA:
        hint = f"this version of the harness reads schema {SCHEMA}"
        place = document.place_of(("schema",))
        raise _failure(name, (Mistake(*place, f"schema {schema} is not known here", hint),))
    found: list[Mistake] = []
    unsound: frozenset[str] = frozenset()
    try:
        file = MatrixFile.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        found += _mistakes_of(details, document)
        unsound = frozenset(str(detail["loc"][0]) for detail in details if not _is_extra(detail))
        file = MatrixFile.model_validate(_sound_part(data, details))
    in_cells = check_cells(file, document, unsound)
    return Reading(
        file=file,
        name=name,
        document=document,
        mistakes=(*document.mistakes, *found, *in_cells, *check_rest(file, document)),
        is_sound_in_cells=not in_cells and not unsound & _CELLS,
    )


def _failure(name: str, mistakes: Iterable[Mistake]) -> HarnessErrors:
    return HarnessErrors(
        tuple(
            HarnessError(one.message, where=f"{name}:{one.line}:{one.column}", hint=one.hint)
            for one in sorted(mistakes)
        )
    )


def _text_of(path: Path, name: str) -> str:
    """The text of the file. Raises: HarnessError; UnreadableText when it is not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        message = "there is no such file"
        hint = "name one that exists; the project's own is matrix.yaml at its root"
        raise HarnessError(message, where=name, hint=hint) from None
    except IsADirectoryError:
        message = "this is a folder"
        raise HarnessError(message, where=name, hint="name the file inside it") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"the file cannot be read: {why}"
        raise HarnessError(message, where=name) from None
    if len(data) > _LARGEST_BYTES:
        hint = "a matrix takes a few thousand bytes: is it the right file?"
        message = f"the file is longer than {_LARGEST_BYTES} bytes"
        raise HarnessError(message, where=name, hint=hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise UnreadableText(
            Mistake(line, column, message, "save the file in the encoding UTF-8")
        ) from None


# ------------------------------------------------------------------ what pydantic found, in our words


def _mistakes_of(details: list[ErrorDetails], document: Document) -> list[Mistake]:
    found: list[Mistake] = []
    lacking: dict[KeyPath, list[str]] = {}
    meant: set[KeyPath] = set()
    for detail in details:
        path = _path_of(detail)
        if detail["type"] == "missing":
            lacking.setdefault(path[:-1], []).append(str(path[-1]))
            continue
        if _is_extra(detail):
            near = near_misses(str(path[-1]), tuple(_fields_in(path[:-1])))
            meant.update((*path[:-1], key) for key in near[:1])
        is_key = detail["loc"][-1] == "[key]" or _is_extra(detail)
        found.append(Mistake(*document.place_of(path, key=is_key), *_sentence(detail, path)))
    for parent, keys in lacking.items():
        # A key that is spelled wrong is one mistake, not two.
        missing = [key for key in keys if (*parent, key) not in meant]
        if missing:
            place = document.place_of(parent, key=True)
            found.append(Mistake(*place, *_lacks(parent, missing)))
    return found


def _lacks(parent: KeyPath, keys: list[str]) -> tuple[str, str]:
    what = _name_of(parent)
    if len(keys) > 1:
        return f"{what} lacks the keys {listed(keys)}", ""
    about = _fields_in(parent)[keys[0]].description or ""
    hint = f"{keys[0]}: {about[:1].lower()}{about[1:]}".rstrip(".")
    return f"{what} lacks the key {shown(keys[0])}", hint


def _path_of(detail: ErrorDetails) -> KeyPath:
    return tuple(part for part in detail["loc"] if part != "[key]")


def _sentence(detail: ErrorDetails, path: KeyPath) -> tuple[str, str]:
    """Message and hint. path: where in the data."""
    value = detail["input"]
    name = _name_of(path)
    kind = detail["type"]
    slip = detail.get("ctx", {}).get("error")
    if isinstance(slip, Slip):
        return slip.message, slip.hint
    if kind == "extra_forbidden":
        known = tuple(_fields_in(path[:-1]))
        there = f"the keys here are {listed(known)}"
        return f"unknown key {shown(str(path[-1]))}", suggestion(str(path[-1]), known, there)
    if kind == "literal_error":  # of `schema` alone
        return f"{name} is {kind_of(value)} instead of a number", f"write schema: {SCHEMA}"
    wanted, example = _SHAPES.get(kind, ("what belongs there", "..."))
    key = str(path[-1])
    hint = f"write {key if key.isidentifier() else shown(key)}: {example}"
    return f"{name} is {kind_of(value)} instead of {wanted}", hint


_SHAPES = {
    "tuple_type": ("a list", "[...]"),
    "dict_type": ("a mapping", "{...}, or lines below"),
    "model_type": ("a mapping", "{...}, or lines below"),
}
"""What pydantic missed → what that is called, and how it is written."""


def _name_of(path: KeyPath) -> str:
    """What stands at `path`, as a sentence begins."""
    match path:
        case ():
            return "the file"
        case ("torch", str(series)):
            return f"torch {named(series)}"
        case ("profiles", str(profile)):
            return f"the profile {named(profile)}"
        case (*_, str(key)):
            return shown(key)
        case _:
            return "an entry"


def _fields_in(path: KeyPath) -> dict[str, FieldInfo]:
    """The keys that belong into the mapping at `path`, which pydantic found to lack one or have another."""
    shape: Any = MatrixFile
    for part in path:
        # Below a class stand its fields, below dict[key, value] the same value for every key.
        is_class = isinstance(shape, type) and issubclass(shape, BaseModel)
        shape = _fields_of(shape)[str(part)].annotation if is_class else shape.__args__[-1]
    return _fields_of(shape)


def _fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


# ----------------------------------------------------------------------------- what is sound of a file


def _is_extra(detail: ErrorDetails) -> bool:
    return detail["type"] == "extra_forbidden"


def _sound_part(data: dict[str, Any], details: list[ErrorDetails]) -> dict[str, Any]:
    """The data without what is wrong in them, and complete enough to be a file of its own."""
    sound = data
    for detail in details:
        path = _path_of(detail)
        is_entry = path[0] in _BY_ENTRY and len(path) > 1
        sound = _without(sound, path if _is_extra(detail) else path[: 1 + is_entry])
    return {"schema": SCHEMA, "pythons": {"always": ()}, "platforms": {}, "torch": {}, **sound}


def _without(data: object, path: KeyPath) -> Any:
    """The data without what stands at `path`, which may be gone already."""
    if not isinstance(data, dict) or path[0] not in data:
        return data
    if len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    return {**data, path[0]: _without(data[path[0]], path[1:])}
