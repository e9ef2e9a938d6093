"""The published JSON Schemas: generated from the classes that read and write the files.

`python -m harness.schemas` writes them to docs/schema; `--check` only compares.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from harness.matrix_file import MatrixFile
from harness.reports import support_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FOLDER = Path(__file__).parents[1] / "docs" / "schema"
"""Where the schemas of this project stand."""


class _Closed(GenerateJsonSchema):
    """Schemas that refuse unknown keys of mappings too, and whose keys an editor can complete."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """A title would repeat the key."""
        return False

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """A mapping: its known keys are listed where there are any, and no other is allowed."""
        generated = super().dict_schema(schema)
        names = generated.get("propertyNames", {}).get("enum")
        if names:
            value = generated["additionalProperties"]
            del generated["propertyNames"]
            generated["properties"] = dict.fromkeys(names, value)
        generated["additionalProperties"] = False
        return generated


def matrix_schema() -> dict[str, Any]:
    """The JSON Schema of matrix.yaml: its shape; what only shows across parts is the harness's to tell."""
    schema = MatrixFile.model_json_schema(schema_generator=_Closed)
    head = {"$schema": DIALECT, "$id": "urn:compile-matrix:schema:matrix:1", "title": "matrix.yaml"}
    return {**head, **{key: value for key, value in schema.items() if key not in head}}


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "matrix.schema.json": matrix_schema,
    "support.schema.json": support_schema,
}
"""File name → what generates it."""


def rendered(name: str) -> str:
    """The text of one schema file. Raises: KeyError for a name that `SCHEMAS` does not have."""
    return json.dumps(SCHEMAS[name](), indent=2) + "\n"


def write(directory: Path, *, check: bool = False) -> tuple[Path, ...]:
    """Bring the schema files of a folder up to date; with `check`, only look.

    Returns the files that were not up to date. Raises: OSError.
    """
    stale = tuple(
        directory / name for name in SCHEMAS if _text_of(directory / name) != rendered(name)
    )
    if not check:
        directory.mkdir(parents=True, exist_ok=True)
        for path in stale:
            path.write_text(rendered(path.name), encoding="utf-8", newline="\n")
    return stale


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Exits with 1 when `--check` finds a file that is not up to date."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.schemas", description="Write the JSON Schemas to docs/schema."
    )
    parser.add_argument("--check", action="store_true", help="only compare, and show differences")
    check = parser.parse_args(arguments).check
    for path in write(FOLDER, check=check):
        if check:
            sys.stdout.writelines(_differences(path))
            sys.stderr.write(f"{path.name} is not up to date: run nox -s docs\n")
        else:
            sys.stdout.write(f"wrote {path}\n")
    return int(check and bool(write(FOLDER, check=True)))


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _differences(path: Path) -> list[str]:
    old, new = _text_of(path), rendered(path.name)
    names = f"{path.name} (committed)", f"{path.name} (generated)"
    return list(
        difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), *names)
    )


if __name__ == "__main__":
    sys.exit(main())
