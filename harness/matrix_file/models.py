"""The shape of matrix.yaml. Its JSON Schema is generated from these classes, descriptions included.

What a reader of the file gets wrong is told here, value by value, as a `Slip`; what only shows when
several parts are compared is told by `harness.matrix_file.reading`.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from harness.errors import HarnessError
from harness.matrix_file.patterns import PLATFORMS, parse_pattern
from harness.matrix_file.wording import kind_of, shown, suggestion
from harness.matrix_file.yaml_text import BareKey, BareNumber
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = 1
"""Version of the file format that is read here."""

DEFAULT_DEADLINE = "default"
"""The key of `deadline_s` for the paths that have none of their own."""

_NUMBER = "(0|[1-9][0-9]*)"
_MINOR = f"^{_NUMBER}[.]{_NUMBER}$"
_PATCH = f"^{_NUMBER}[.]{_NUMBER}[.]{_NUMBER}$"
_PYTHON = "^3[.][1-9][0-9]$"
_DAY = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
_SIZE = "^[1-9][0-9]{0,5}([.][0-9]{1,3})? ?(MiB|GiB)$"
_URL = "^https?://[^ ]+$"
_PROFILE = "^[a-z][a-z0-9-]*$"
_UNITS = {"MiB": 2**20, "GiB": 2**30}
_DAY_S = 86_400


class Slip(ValueError):
    """What is wrong with one value, and what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _refuse(message: str, hint: str = "") -> NoReturn:
    raise Slip(message, hint) from None


def bytes_of(size: str) -> int:
    """The bytes of a size as this file writes it (`4GiB`)."""
    return int(float(size[:-3]) * _UNITS[size[-3:]])


def _text(what: str, value: object, example: str) -> str:
    """The value if it is a text. what: what it should be, as the sentence begins. Raises: Slip."""
    if isinstance(value, (BareKey, BareNumber)):
        text = value.text if isinstance(value, BareNumber) else str(value)
        if "." in text:
            number = repr(float(text))
            reading = "" if number == text else f" (YAML reads {text} as {number})"
            _refuse(f"{what} {number} is a number", f'quote it: "{text}"{reading}')
        value = int(text)
    if isinstance(value, int) and not isinstance(value, bool):
        _refuse(f"{what} {value} is a number", f'write a text such as "{example}"')
    if not isinstance(value, str):
        _refuse(f"{what} is {kind_of(value)}", f'write a text such as "{example}"')
    return value


def _written(what: str, pattern: str, example: str) -> Callable[[object], str]:
    """A validator: a text written after the pattern."""

    def check(value: object) -> str:
        text = _text(what, value, example)
        if not re.fullmatch(pattern.removesuffix("$"), text):
            _refuse(f"{shown(text)} is no {what}", f'write it like "{example}"')
        return text

    return check


def _python(value: object) -> str:
    text = _text("Python version", value, "3.12")
    if re.fullmatch(r"3\.\d+\.\d+\S*", text):
        minor = ".".join(text.split(".")[:2])
        _refuse(f"{shown(text)} is a patch of Python {minor}", f'name the minor: "{minor}"')
    return _written("Python version from 3.10 on", _PYTHON, "3.12")(text)


def _day(value: object) -> str:
    text = _written("day", _DAY, "2024-09-04")(value)
    try:
        date.fromisoformat(text)
    except ValueError:
        _refuse(f"there is no day {shown(text)}")
    return text


def _moment(value: object) -> str:
    text = _text("time", value, "2024-10-10T00:00:00Z")
    if re.fullmatch(_DAY.removesuffix("$"), text):
        _refuse(
            f"{shown(text)} is a day without a time",
            f'write "{text}T00:00:00Z": uv would begin a bare day in the local time zone',
        )
    if re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d.*", text) and not text.endswith("Z"):
        hint = "end it in Z, which is UTC: the same everywhere"
        _refuse(f"{shown(text)} is not in UTC", hint)
    _written("UTC time", _MOMENT, "2024-10-10T00:00:00Z")(text)
    try:
        datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        _refuse(f"there is no time {shown(text)}")
    return text


def _platform(value: object) -> str:
    text = _text("platform", value, PLATFORMS[0])
    if text not in PLATFORMS:
        known = f"the platforms are {', '.join(PLATFORMS)}"
        _refuse(f"unknown platform {shown(text)}", suggestion(text, PLATFORMS, known))
    return text


def _path(value: object) -> str:
    known = (*PATHS, DEFAULT_DEADLINE)
    text = _text("path", value, "inductor")
    if text not in known:
        otherwise = f"the paths are {', '.join(known)}"
        _refuse(f"unknown path {shown(text)}", suggestion(text, known, otherwise))
    return text


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        what = shown(value) if isinstance(value, str) else f"a deadline that is {kind_of(value)}"
        _refuse(f"{what} is no number of seconds", "write a number without a unit, such as 60")
    if not 0 < value <= _DAY_S:
        _refuse(f"{value:g} s is no deadline", "write more than 0 s and at most a day, 86400 s")
    return float(value)


def _size(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(_SIZE.removesuffix("$"), value):
        return value
    if isinstance(value, str):
        what = shown(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        what = f"{getattr(value, 'text', value)} without a unit"
    else:
        what = f"a size that is {kind_of(value)}"
    _refuse(f"{what} is no size of memory", "write a number and MiB or GiB, such as 4GiB")


def _requirement(value: object) -> str:
    text = _text("requirement", value, "numpy")
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        hint = 'write it as pip reads it, such as "setuptools<82"'
        _refuse(f"{shown(text)} is no requirement", hint)
    if requirement.name.lower() == "torch":
        _refuse("torch is no requirement", "leave it out: each cell brings its own")
    return text


def _cells(value: object) -> str:
    # Without quotes 3.12 is a number, but the quotes are not what it lacks.
    if isinstance(value, BareNumber):
        value = value.text
    text = _text("pattern", value, "3.12-2.4")
    try:
        parse_pattern(text)
    except HarnessError as error:
        _refuse(error.message, error.hint)
    return text


# A validator stands last: what is before it is the schema of the text that it lets through.
PythonVersion = Annotated[str, Field(pattern=_PYTHON), BeforeValidator(_python)]
Series = Annotated[
    str, Field(pattern=_MINOR), BeforeValidator(_written("torch series", _MINOR, "2.4"))
]
Patch = Annotated[
    str, Field(pattern=_PATCH), BeforeValidator(_written("torch version", _PATCH, "2.4.1"))
]
Cuda = Annotated[
    str, Field(pattern=_MINOR), BeforeValidator(_written("CUDA version", _MINOR, "12.1"))
]
Day = Annotated[str, Field(pattern=_DAY), BeforeValidator(_day)]
Moment = Annotated[str, Field(pattern=_MOMENT), BeforeValidator(_moment)]
Platform = Annotated[
    str, Field(json_schema_extra={"enum": list(PLATFORMS)}), BeforeValidator(_platform)
]
PathName = Annotated[
    str,
    Field(json_schema_extra={"enum": [*PATHS, DEFAULT_DEADLINE]}),
    BeforeValidator(_path),
]
Seconds = Annotated[float, Field(gt=0, le=_DAY_S), BeforeValidator(_seconds)]
Size = Annotated[str, Field(pattern=_SIZE), BeforeValidator(_size)]
RequirementText = Annotated[str, Field(min_length=1), BeforeValidator(_requirement)]
Url = Annotated[
    str, Field(pattern=_URL), BeforeValidator(_written("URL", _URL, "https://pypi.org/simple"))
]
ProfileName = Annotated[
    str, Field(pattern=_PROFILE), BeforeValidator(_written("name of a profile", _PROFILE, "quick"))
]
CellPattern = Annotated[str, Field(min_length=1), BeforeValidator(_cells)]

_UNIQUE: dict[str, Any] = {"uniqueItems": True}
_NOT_EMPTY: dict[str, Any] = {"minProperties": 1}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=False)


class Pythons(_Section):
    """The minor versions of CPython that are looked at."""

    always: tuple[PythonVersion, ...] = Field(
        description="Pythons whose cells are expected: fetched where a machine lacks them.",
        json_schema_extra=_UNIQUE,
    )
    only_if_found: tuple[PythonVersion, ...] = Field(
        default=(),
        description="Pythons that count as the newest only where an interpreter is found.",
        json_schema_extra=_UNIQUE,
    )


class PlatformFacts(_Section):
    """What is special about the wheels of one platform."""

    cuda_since: Series | None = Field(
        default=None,
        description="The first series whose wheels on PyPI hold CUDA; without it none does.",
    )
    until: Series | None = Field(
        default=None, description="The last series that has wheels for the platform at all."
    )


class SeriesFacts(_Section):
    """One series of PyTorch, such as 2.4, with its patches and wheels."""

    default: Patch = Field(
        description="The patch that a cell of the series means when it names none."
    )
    patches: dict[Patch, Day] = Field(
        description="Every stable patch, and the day on which its first Linux wheel came to PyPI."
    )
    as_of: Moment = Field(
        description="The UTC time up to which a cell's other packages are resolved, some weeks "
        "after the last patch, such as 2024-10-10T00:00:00Z."
    )
    cuda: Cuda = Field(description="The CUDA version of the wheels on PyPI, such as 12.1.")
    pythons: tuple[PythonVersion, ...] = Field(
        description="The Pythons that every platform has wheels for.", json_schema_extra=_UNIQUE
    )
    except_: dict[Platform, tuple[PythonVersion, ...]] = Field(
        default={},
        alias="except",
        description="Platforms with wheels for other Pythons than `pythons` says, and for which.",
    )


class Requirements(_Section):
    """What an environment gets besides torch, by era."""

    release: tuple[RequirementText, ...] = Field(
        default=("numpy", "setuptools"),
        description="Beside a torch of its own day: what Inductor and the NumPy bridge need.",
        json_schema_extra=_UNIQUE,
    )
    today: tuple[RequirementText, ...] = Field(
        default=("numpy",),
        description="Beside a torch installed today, as a user would.",
        json_schema_extra=_UNIQUE,
    )


class Indexes(_Section):
    """Where packages come from."""

    default: Url | None = Field(
        default=None, description="The index of all packages; uv's own default when empty."
    )
    cpu: Url | None = Field(
        default="https://download.pytorch.org/whl/cpu",
        description="The index that gives CPU cells on Linux their torch; the default one when "
        "empty, or when this one does not answer.",
    )


class Limits(_Section):
    """What a probe may take."""

    deadline_s: dict[PathName, Seconds] = Field(
        default={
            "dynamo": 60.0,
            "aot": 90.0,
            "inductor": 240.0,
            "jit-trace": 60.0,
            "script": 240.0,
            DEFAULT_DEADLINE: 120.0,
        },
        json_schema_extra={"required": [DEFAULT_DEADLINE]},
        description="Seconds that a probe may take, by its path. A path counts for its variants "
        "too: `inductor` for `inductor-dynamic`.",
    )
    memory: Size = Field(default="4GiB", description="Memory that a probe may take, such as 4GiB.")


class MatrixFile(_Section):
    """Which Python and PyTorch pairs there are, and which of them a run looks at."""

    schema_: Literal[1] = Field(
        alias="schema", description="The version of this format, which is 1."
    )
    pythons: Pythons = Field(description="The minor versions of CPython that are looked at.")
    platforms: dict[Platform, PlatformFacts] = Field(
        json_schema_extra=_NOT_EMPTY,
        description="The platforms that are looked at, and what is special about their wheels.",
    )
    torch: dict[Series, SeriesFacts] = Field(
        json_schema_extra=_NOT_EMPTY,
        description="Every series of PyTorch that is looked at, such as 2.4.",
    )
    requirements: Requirements = Field(
        default=Requirements(), description="What an environment gets besides torch, by era."
    )
    indexes: Indexes = Field(default=Indexes(), description="Where packages come from.")
    limits: Limits = Field(default=Limits(), description="What a probe may take.")
    profiles: dict[
        ProfileName,
        Annotated[tuple[CellPattern, ...], Field(json_schema_extra={"minItems": 1, **_UNIQUE})],
    ] = Field(
        default={},
        description="Names for selections of cells. A pattern is <python>-<torch>[-cuda][-today], "
        "with * for any, or newest[-cuda][-today].",
    )
