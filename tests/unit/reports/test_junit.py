"""junit.xml as its readers take it; their rules are asserted here one by one."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import test_results_parser
from junit2htmlreport.parser import Junit
from junitparser.cli import main as junitparser_main

from harness.reports import junit
from harness.reports.junit import failure_type, render_junit
from harness.results import Cause, Findings, NotRunReason, Result, Standing, Verdict
from tests.unit.reports.examples import make_case, make_cell, make_large, make_result

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

KINDS = ("realistic", "hostile", "nothing", "unprobed")

# What the strictest schema (Jenkins' xunit plug-in) allows on each element.
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
    "property": {"name", "value"},
    "properties": set(),
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "testcase": {"failure", "skipped", "system-out"},
    "properties": {"property"},
}
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse(findings: Findings) -> ET.Element:
    return ET.fromstring(render_junit(findings))


def one(result: Result) -> ET.Element:
    """The testcase of a single result."""
    cell = make_cell("3.12-2.4", "2.4.1")
    case = make_case("a/b", "A case")
    findings = Findings(cells=(cell,), cases=(case,), results=(result,), machines=(), generated="")
    testcase = parse(findings).find("testsuite/testcase")
    assert testcase is not None
    return testcase


def kind_of(testcase: ET.Element) -> list[str]:
    return [child.tag for child in testcase]


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_has_only_what_the_strictest_reader_allows(
    kind: str, request: pytest.FixtureRequest
) -> None:
    text = render_junit(request.getfixturevalue(kind))
    assert not ILLEGAL.search(text)
    for element in ET.fromstring(text).iter():
        assert set(element.attrib) <= ALLOWED[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        if element.tag in ("testsuite", "testcase"):
            assert element.attrib["name"]
            assert re.fullmatch(r"\d+\.\d{1,3}", element.attrib["time"])
        if element.tag == "testcase":
            assert "." not in element.attrib["classname"]
            assert len(element) <= 1
        if element.tag in ("failure", "skipped"):
            # Codecov takes an empty <skipped/> for a test that passed.
            assert element.text
            assert "\n" not in element.attrib["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_testcases(kind: str, request: pytest.FixtureRequest) -> None:
    root = parse(request.getfixturevalue(kind))
    for element in (root, *root.iter("testsuite")):
        assert int(element.attrib["tests"]) == len(list(element.iter("testcase")))
        assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        assert element.attrib["errors"] == "0"
        if element.tag == "testsuite":
            assert int(element.attrib["skipped"]) == len(list(element.iter("skipped")))


def test_a_suite_is_a_cell_with_its_facts(realistic: Findings) -> None:
    suites = {suite.attrib["name"]: suite for suite in parse(realistic).iter("testsuite")}
    assert list(suites) == [cell.id for cell in realistic.cells]
    facts = {p.attrib["name"]: p.attrib["value"] for p in suites["3.12-2.4"].iter("property")}
    assert facts["torch_version"] == "2.4.1+cpu"
    assert facts["packages"] == "numpy==1.26.4 sympy==1.12 torch==2.4.1+cpu"
    assert suites["3.12-2.4"].attrib["timestamp"] == "2026-12-01T04:00:00Z"


def test_names_are_unique_and_carry_the_cell(realistic: Findings) -> None:
    names = Counter(
        (testcase.attrib["classname"], testcase.attrib["name"])
        for testcase in parse(realistic).iter("testcase")
    )
    assert max(names.values()) == 1
    assert ("3_12-2_4/bytecode", "bytecode/match_class [aot]") in names


def test_an_unmeasured_cell_is_one_skipped_testcase_never_an_empty_suite(
    unprobed: Findings,
) -> None:
    for suite in parse(unprobed).iter("testsuite"):
        (testcase,) = suite.iter("testcase")
        assert kind_of(testcase) == ["skipped"]
    assert "Caused by: connection reset" in render_junit(unprobed)


def test_a_cell_that_no_time_is_known_of_has_no_timestamp() -> None:
    cell = make_cell("3.12-2.4", "2.4.1", at="")
    findings = Findings(cells=(cell,), cases=(), results=(), machines=(), generated="")
    (suite,) = parse(findings)
    assert "timestamp" not in suite.attrib
    assert suite.find("testcase/skipped") is not None


@pytest.mark.parametrize(
    ("verdict", "standing", "expected"),
    [
        (Verdict.FULL, Standing.EXPECTED, ""),
        (Verdict.ERROR, Standing.EXPECTED, ""),
        (Verdict.ERROR, Standing.NEW, "error"),
        (Verdict.WRONG, Standing.WORSE, "wrong"),
        (Verdict.PARTIAL, Standing.WORSE, "partial"),
        (Verdict.UNAVAILABLE, Standing.WORSE, "unavailable"),
        (Verdict.CRASH, Standing.CHANGED, "crash"),
        (Verdict.PARTIAL, Standing.CHANGED, ""),
        (Verdict.INVALID, Standing.CHANGED, "invalid"),
        (Verdict.FULL, Standing.BETTER, "better-than-expected"),
        (Verdict.UNCOMPILED, Standing.BETTER, "better-than-expected"),
        (Verdict.NOT_RUN, Standing.WORSE, ""),
        (Verdict.NOT_RUN, Standing.EXPECTED, ""),
    ],
)
def test_a_failure_is_a_difference(verdict: Verdict, standing: Standing, expected: str) -> None:
    result = make_result("3.12-2.4", "a/b", "dynamo", verdict, standing=standing)
    assert failure_type(result) == expected
    failure = one(result).find("failure")
    assert (failure.attrib["type"] if failure is not None else "") == expected


def test_a_failure_carries_its_evidence_and_how_to_see_it_again(realistic: Findings) -> None:
    failures = {failure.attrib["type"]: failure for failure in parse(realistic).iter("failure")}
    assert failures["wrong"].attrib["message"] == (
        "wrong (wrong-result), expected full: output differs from eager"
    )
    text = failures["wrong"].text or ""
    for part in (
        "verdict: wrong",
        "cause: wrong-result",
        "expected: full (worse)",
        "output[0]: 3 items in eager, 1 when compiled",
        "again: compile-matrix run --fresh --reports reports/again --cells 3.13-2.6 --cases bytecode/listcomp_break --paths inductor",
    ):
        assert part in text
    assert "Fatal Python error: Segmentation fault" in (failures["crash"].text or "")
    assert "ended: by SIGSEGV" in (failures["crash"].text or "")
    assert "raised at: torch/_inductor/codecache.py:612" in (failures["error"].text or "")
    assert "better-than-expected" in failures


def test_a_known_failure_passes_and_tells_its_verdict() -> None:
    known = make_result(
        "3.12-2.4", "a/b", "dynamo", Verdict.ERROR, cause=Cause.GRAPH_BREAK, message="it broke"
    )
    testcase = one(known)
    assert kind_of(testcase) == ["system-out"]
    assert "verdict: error\ncause: graph-break\nexpected: error (graph-break) (expected)" in (
        testcase[0].text or ""
    )


@pytest.mark.parametrize(
    ("verdict", "seen", "message"),
    [
        (
            Verdict.NOT_RUN,
            {"not_run": NotRunReason.NO_DEVICE, "message": "none"},
            "no CUDA device: none",
        ),
        (Verdict.NOT_RUN, {}, "not-run"),
        (
            Verdict.UNAVAILABLE,
            {"message": "needs Python >=3.11"},
            "unavailable: needs Python >=3.11",
        ),
        (Verdict.INVALID, {"message": "eager runs differ"}, "invalid: eager runs differ"),
    ],
)
def test_what_says_nothing_of_the_compiler_is_skipped_with_its_reason(
    verdict: Verdict, seen: dict[str, Any], message: str
) -> None:
    testcase = one(make_result("3.12-2.4", "a/b", "dynamo", verdict, **seen))
    assert kind_of(testcase) == ["skipped"]
    assert testcase[0].attrib == {"type": verdict.value, "message": message}


def test_long_evidence_is_cut_and_says_so(hostile: Findings) -> None:
    text = render_junit(hostile)
    assert len(text) < 60_000
    assert "more characters]" in text


def test_a_file_holds_only_so_much_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "_EVIDENCE_BUDGET", 2_000)
    text = render_junit(make_large(20, 2))
    assert "[cut: this file holds as much evidence as its readers take" in text
    # The command that shows it again is never left out.
    root = ET.fromstring(text)
    outputs = [output.text or "" for output in root.iter("system-out")]
    assert all("again: compile-matrix run" in output for output in outputs)


def test_a_time_that_is_no_number_is_zero() -> None:
    odd = make_result("3.12-2.4", "a/b", "dynamo", seconds=float("inf"))
    assert one(odd).attrib["time"] == "0.0"


# Other projects' readers


@pytest.mark.parametrize(
    ("kind", "status"), [("realistic", 1), ("hostile", 1), ("nothing", 0), ("unprobed", 0)]
)
def test_junitparser_verifies_it(
    kind: str, status: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(render_junit(request.getfixturevalue(kind)), encoding="utf-8")
    assert junitparser_main(["verify", str(file)]) == status


@pytest.mark.parametrize("kind", KINDS)
def test_codecov_counts_what_we_count(kind: str, request: pytest.FixtureRequest) -> None:
    text = render_junit(request.getfixturevalue(kind))
    runs = test_results_parser.parse_junit_xml(text.encode()).testruns
    found = Counter(str(run.outcome) for run in runs)
    root = ET.fromstring(text)
    assert found["failure"] == len(list(root.iter("failure")))
    assert found["skip"] == len(list(root.iter("skipped")))
    assert len(runs) == len(list(root.iter("testcase")))


@pytest.mark.parametrize("kind", KINDS)
def test_junit2html_shows_every_suite(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    findings = request.getfixturevalue(kind)
    file = tmp_path / "junit.xml"
    file.write_text(render_junit(findings), encoding="utf-8")
    page = Junit(str(file)).html()
    assert all(cell.id in page for cell in findings.cells)


def test_snapshot(realistic: Findings, snapshot_xml: SnapshotAssertion) -> None:
    assert render_junit(realistic) == snapshot_xml
