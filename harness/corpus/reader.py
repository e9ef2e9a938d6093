"""One case file → one case, or all that is wrong with it."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from harness.corpus.block import Block, find_block
from harness.corpus.model import (
    DEVICES,
    SCRIPT,
    Case,
    Isolation,
    Kind,
    Mistakes,
)
from harness.corpus.scan import Definition, NotSourceError, decode, is_url, scan, urls_in
from harness.matrix_file.wording import suggestion
from harness.worker.paths import MAIN_PATHS, PATHS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.errors import HarnessError

_ID = re.compile(r"[A-Za-z0-9_./-]+")


def read_case(
    file: Path, case_id: str, category: str
) -> tuple[Case | None, tuple[HarnessError, ...]]:
    """Read one file; with any mistake there is no case. Raises nothing."""
    mistakes = Mistakes(file)
    if not _ID.fullmatch(case_id):
        odd = "".join(sorted(set(_ID.sub("", case_id))))
        message = f"the case's id {case_id!r} holds what an id cannot"
        mistakes.add(message, hint=f"rename the file or its folder, without {odd!r}")
    try:
        data = file.read_bytes()
        text = decode(data)
    except OSError as error:
        mistakes.add(f"cannot be read: {error.strerror}")
    except NotSourceError as error:
        hint = "save the file as UTF-8"
        mistakes.add(str(error), error.line, column=error.column, hint=hint)
    else:
        case = _case_of(file, case_id, category, data, text, mistakes)
        if not mistakes.found:
            return case, ()
    return None, mistakes.in_order()


def _case_of(
    file: Path, case_id: str, category: str, data: bytes, text: str, mistakes: Mistakes
) -> Case | None:
    if not text.strip():
        mistakes.add("the file is empty")
        return None
    found = scan(text)
    block = find_block(found.lines, mistakes)
    title = " ".join(found.docstring.strip().partition("\n")[0].split())
    if block is not None and not title:
        hint = "the first line of the docstring at its top says what is asked; tables show it"
        mistakes.add("the case has no docstring", 1, hint=hint)
    kind = _kind_of(found.definitions, block is not None, mistakes)
    facts = _Facts(block or Block(), kind, mistakes)
    return Case(
        id=case_id,
        title=title or file.name,
        category=category,
        kind=kind,
        paths=facts.paths(),
        python=facts.specifiers("python", ">=3.11"),
        torch=facts.specifiers("torch", ">=2.1"),
        devices=facts.names("devices", DEVICES, DEVICES),
        isolation=facts.isolation(),
        deadline_s=facts.deadline_s(),
        source=facts.source() if block is not None else urls_in(found.docstring),
        file=file,
        text=text,
        digest=hashlib.sha256(data).hexdigest(),
    )


def _kind_of(definitions: Sequence[Definition], has_block: bool, mistakes: Mistakes) -> Kind:
    """What the file is by the names that it defines.

    Without a block it may be anybody's script, with a variable `inputs` or a function `run` that it
    calls itself; a function of such a name that it never mentions again is meant for the harness.
    """
    if not has_block:
        definitions = [d for d in definitions if d.is_function or d.name == "run"]
        if {d.name for d in definitions} != {"run", "inputs"}:
            definitions = [d for d in definitions if not d.is_used]
    lines = {d.name: d.line for d in definitions}
    for definition in definitions:
        if definition.is_coroutine:
            message = f"`{definition.name}` is a coroutine function, which nobody awaits"
            hint = "make it a plain function that drives the coroutine itself"
            mistakes.add(message, definition.line, hint=hint)
    if "check" in lines:
        others = " and ".join(f"`{name}`" for name in lines if name != "check")
        if others:
            hint = "`check` asserts for itself; `run` and `inputs` are compared with eager"
            message = f"both `check` and {others}, but a case is one or the other"
            mistakes.add(message, lines["check"], hint=hint)
        return "check"
    for name, other in (("run", "inputs"), ("inputs", "run")):
        if name in lines and other not in lines:
            hint = f"define `{other}` at column 0, or `check(compile)` instead of both"
            mistakes.add(f"`{name}` without `{other}`", lines[name], hint=hint)
    return "run" if lines else "script"


def _type_of(value: object) -> str:
    """What a TOML value is, for a sentence that says what it should have been."""
    names = {bool: "a boolean", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, dict) else "a date or time")


@dataclass(slots=True)
class _Facts:
    """The values of a block, each checked as it is asked for; defaults where it says nothing."""

    block: Block
    kind: Kind
    mistakes: Mistakes

    def wrong(self, key: str, message: str, hint: str = "") -> None:
        self.mistakes.add(message, self.block.line_of(key), hint=hint)

    def names(self, key: str, known: Sequence[str], default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of names, each of them known and none twice."""
        names = self.block.values.get(key, list(default))
        if not isinstance(names, list):
            message = f"`{key}` is {_type_of(names)}, not a list of names"
            self.wrong(key, message, f'{key} = ["{known[0]}"]')
            return default
        all_of_them = f"there are: {', '.join(known)}"
        if not names:
            self.wrong(key, f"`{key}` is empty: nothing would be probed", all_of_them)
        for place, name in enumerate(names):
            if not isinstance(name, str):
                self.wrong(key, f"`{key}` names {name!r}, which is {_type_of(name)}", all_of_them)
            elif name not in known:
                hint = suggestion(name, known, all_of_them)
                self.wrong(key, f"unknown {key[:-1]} {name!r}", hint)
            elif name in names[:place]:
                self.wrong(key, f"`{key}` names {name!r} twice")
        return tuple(name for name in names if isinstance(name, str))

    def paths(self) -> tuple[str, ...]:
        is_script = self.kind == "script"
        paths = self.names("paths", tuple(PATHS), (SCRIPT,) if is_script else MAIN_PATHS)
        if is_script and set(paths) != {SCRIPT}:
            hint = "leave `paths` out, or define `run` and `inputs`, or `check(compile)`"
            self.wrong("paths", "a plain script has no paths: it calls torch.compile itself", hint)
        if not is_script and SCRIPT in paths:
            self.wrong("paths", f"path {SCRIPT!r} is that of a file without `run` and `check`")
        if self.kind == "check" and "jit-trace" in paths:
            hint = "`check` is handed torch.compile; define `run` and `inputs` to have it traced"
            self.wrong("paths", "path 'jit-trace' needs `run` and `inputs`", hint)
        return paths

    def specifiers(self, key: str, example: str) -> SpecifierSet:
        said, hint = self.block.values.get(key, ""), f'{key} = "{example}"'
        if not isinstance(said, str):
            self.wrong(key, f"`{key}` is {_type_of(said)}, not text", hint)
            return SpecifierSet()
        try:
            return SpecifierSet(said)
        except InvalidSpecifier:
            self.wrong(key, f"`{key}` is no version specifier: {said!r}", hint)
            return SpecifierSet()

    def isolation(self) -> Isolation:
        said = self.block.values.get("isolation")
        if said not in (None, "fork", "process"):
            self.wrong("isolation", f"`isolation` is {said!r}, not 'fork' or 'process'")
        if said == "fork" and self.kind == "script":
            message = "a plain script has a process of its own"
            self.wrong("isolation", message, "leave `isolation` out")
        return "process" if said == "process" or self.kind == "script" else "fork"

    def deadline_s(self) -> float | None:
        said = self.block.values.get("deadline")
        if said is None:
            return None
        if isinstance(said, bool) or not isinstance(said, (int, float)):
            message = f"`deadline` is {_type_of(said)}, not a number of seconds"
            self.wrong("deadline", message, "deadline = 60")
            return None
        if not 0 < said < math.inf:
            message = f"`deadline` is {said}: no time in which anything could be probed"
            self.wrong("deadline", message, "a number of seconds above 0")
        return float(said)

    def source(self) -> tuple[str, ...]:
        said = self.block.values.get("source", [])
        urls = said if isinstance(said, list) else [said]
        for url in urls:
            if not isinstance(url, str):
                self.wrong("source", f"`source` is {_type_of(url)}, not a URL or a list of URLs")
            elif not is_url(url):
                self.wrong("source", f"`source` is no URL: {url!r}", "it begins with https://")
        return tuple(urls)
