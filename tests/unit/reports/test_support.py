"""support.json keeps the promise that its schema makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from harness.reports.support import SCHEMA_ID, render_support, support_schema
from harness.results import Findings, Standing, Verdict
from tests.unit.reports.examples import CELLS, make_result

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

SCHEMA_FILE = Path(__file__).parents[3] / "docs" / "schema" / "support.schema.json"

KINDS = ("realistic", "hostile", "nothing", "unprobed")


def read(findings: Findings) -> Any:
    return json.loads(render_support(findings))


def test_the_published_schema_is_the_one_that_the_classes_give() -> None:
    published = SCHEMA_FILE.read_text(encoding="utf-8")
    assert published == json.dumps(support_schema(), indent=2) + "\n"


def test_the_schema_says_what_everything_means() -> None:
    schema = support_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == SCHEMA_ID
    objects = [part for part in (schema, *schema["$defs"].values()) if part["type"] == "object"]
    assert len(objects) == 9
    for part in objects:
        for name, described in part["properties"].items():
            assert described.get("description"), name
        assert set(part["required"]) == set(part["properties"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_document_is_valid(kind: str, request: pytest.FixtureRequest) -> None:
    document = read(request.getfixturevalue(kind))
    jsonschema.Draft202012Validator(support_schema()).validate(document)


def test_a_wrong_document_is_not_valid(realistic: Findings) -> None:
    document = read(realistic)
    document["results"][0]["verdict"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, support_schema())


def test_the_keys_that_readers_rely_on_are_there(realistic: Findings) -> None:
    document = read(realistic)
    assert list(document) == [
        "schema",
        "generated",
        "harness",
        "environment",
        "cells",
        "cases",
        "results",
    ]
    assert document["schema"] == 1
    assert document["harness"] == "0.1.0"
    assert list(document["cells"]) == [cell.id for cell in CELLS]
    assert document["cells"]["3.14-2.9"]["reason"] == "no interpreter"
    assert document["environment"]["machines"]["m1"]["facts"]["cores"] == "2"
    assert document["cases"]["gate/module"]["category"] == "gate"


def test_a_result_holds_its_evidence(realistic: Findings) -> None:
    results = read(realistic)["results"]
    (refused,) = [
        result
        for result in results
        if (result["cell"], result["case"], result["path"])
        == ("3.12-2.3", "gate/decorator", "dynamo")
    ]
    assert refused["works"] is False
    assert refused["cause"] == "python-unsupported"
    assert refused["exception"] == {
        "type": "builtins.RuntimeError",
        "message": "Dynamo is not supported on Python 3.12+",
    }
    assert refused["expected"] == {"verdict": "error", "cause": "python-unsupported"}
    partial = next(result for result in results if result["verdict"] == "partial")
    assert partial["breaks"][0]["code"] == "GB0082"
    assert partial["breaks"][0]["line"] == 31
    new = next(result for result in results if result["standing"] == "new")
    assert new["expected"] is None
    assert {result["verdict"] for result in results} == {verdict.value for verdict in Verdict}
    assert {result["standing"] for result in results} == {standing.value for standing in Standing}


def test_any_reader_can_read_it(hostile: Findings) -> None:
    text = render_support(hostile)
    assert text.isascii()
    assert len(text) < 500_000
    # What a strict reader does with every string: half a surrogate pair would not pass.
    json.dumps(json.loads(text), ensure_ascii=False).encode()


def test_a_time_that_is_no_number_stays_json() -> None:
    odd = make_result("3.12-2.4", "a/b", "dynamo", seconds=float("nan"), standing=Standing.EXPECTED)
    findings = Findings(cells=(), cases=(), results=(odd,), machines=(), generated="")
    assert read(findings)["results"][0]["seconds"] == 0.0


def test_snapshot(realistic: Findings, snapshot_json: SnapshotAssertion) -> None:
    assert render_support(realistic) == snapshot_json
