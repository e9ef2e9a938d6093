"""junit.xml: a suite for each cell, a testcase for each probe, as CI services read them.

What those services stumble over decides the form: one level of suites, no properties on a testcase, never
`failure` beside `skipped`, nothing that XML forbids, and a class name without dots, since some of them
take what stands before the last dot for a package.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import junitparser

from harness.reports.evidence import (
    describe,
    headline,
    summary_lines,
    verdict_text,
)
from harness.reports.plain import head, one_line
from harness.reports.survey import Column, survey
from harness.results import CellRecord, Findings, Result, Standing, Verdict

BETTER_TYPE = "better-than-expected"

_TEXT_LIMIT = 12_000
_EVIDENCE_BUDGET = 16_000_000
"""Characters of evidence in one file: GitLab refuses files over 30 MB, and text grows as it is escaped."""


def render_junit(findings: Findings) -> str:
    """The JUnit report; the same text whichever XML library junitparser finds installed."""
    report = junitparser.JUnitXml("torch.compile support")
    left = _EVIDENCE_BUDGET
    counts = {"tests": 0, "failures": 0, "errors": 0}
    total_s = 0.0
    for column in survey(findings).columns:
        suite, left = _suite(column, left)
        report.append(suite)
        for name in counts:
            counts[name] += getattr(suite, name)
        total_s += suite.time
    report.tests, report.failures, report.errors = counts.values()
    report.time = round(total_s, 3)
    # Read and written once more, so that quotes and escapes do not depend on whether lxml is there.
    root = ET.fromstring(report.tostring())
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _suite(column: Column, left: int) -> tuple[junitparser.TestSuite, int]:
    """A cell's suite, and how much evidence may still be written after it."""
    cell = column.cell
    suite = junitparser.TestSuite(one_line(cell.id))
    for name, value in _facts(column).items():
        suite.add_property(name, value)
    testcases: list[junitparser.TestCase] = []
    for result in column.results:
        testcase, written = _testcase(result, cell, is_short=left <= 0)
        left -= written
        testcases.append(testcase)
    if not testcases:
        # An empty suite is shown as nothing at all, or as green.
        testcase = junitparser.TestCase("environment", _class_name(cell.id, ""), 0.0)
        testcase.append(_skipped(column.why_not_run, "not-run", column.evidence))
        testcases.append(testcase)
    for testcase in testcases:
        suite.append(testcase)
    kinds = [type(entry) for testcase in testcases for entry in testcase.result]
    suite.tests = len(testcases)
    suite.failures = kinds.count(junitparser.Failure)
    suite.errors = 0
    suite.skipped = kinds.count(junitparser.Skipped)
    suite.time = round(sum(testcase.time for testcase in testcases), 3)
    if column.first_day:
        suite.timestamp = min(
            (result.observation.at for result in column.results if result.observation.at),
            default=cell.at,
        )
    return suite, left


def _facts(column: Column) -> dict[str, str]:
    """What is known of a cell, without what is empty: a property needs a value."""
    cell = column.cell
    facts = {
        "python": cell.python,
        "torch": cell.torch,
        "python_version": cell.python_version,
        "torch_version": cell.torch_version,
        "device": cell.device,
        "platform": cell.platform,
        "era": cell.era,
        "status": cell.status,
        "reason": "" if column.is_measured else column.why_not_run,
        "index": cell.index,
        "environment": cell.environment,
        "lock": cell.lock,
        "machine": cell.machine,
        "measured": column.days if column.is_measured else "",
        "packages": " ".join(f"{name}=={cell.packages[name]}" for name in sorted(cell.packages)),
    }
    return {name: one_line(value, 4_000) for name, value in facts.items() if value}


def _testcase(
    result: Result, cell: CellRecord, *, is_short: bool
) -> tuple[junitparser.TestCase, int]:
    """A probe's testcase, and how many characters of evidence it holds."""
    seconds = result.observation.seconds
    testcase = junitparser.TestCase(
        f"{one_line(result.case)} [{one_line(result.path)}]",
        _class_name(result.cell, result.case.rpartition("/")[0]),
        round(seconds, 3) if math.isfinite(seconds) and seconds >= 0 else 0.0,
    )
    text = summary_lines(result, cell) if is_short else describe(result, cell)
    if is_short:
        text += "\n[cut: this file holds as much evidence as its readers take; see index.html]"
    text = head(text, _TEXT_LIMIT)
    kind = failure_type(result)
    if kind:
        failure = junitparser.Failure(_message(result), kind)
        failure.text = text
        testcase.append(failure)
    elif result.verdict.works is None:
        testcase.append(_skipped(_message(result), result.verdict.value, ""))
        return testcase, 0
    elif result.verdict is not Verdict.FULL:
        testcase.append(junitparser.SystemOut(text))
    else:
        return testcase, 0
    return testcase, len(text)


def failure_type(result: Result) -> str:
    """The type of the failure that a result is reported as; "" where it is none.

    A failure is what turns the run's exit status: worse, new, better, or changed to something that does
    not work. Nobody looked at a probe that was not run: it never fails.
    """
    if result.verdict is Verdict.NOT_RUN:
        return ""
    verdict: str = result.verdict.value
    match result.standing:
        case Standing.EXPECTED:
            return ""
        case Standing.BETTER:
            return BETTER_TYPE
        case Standing.CHANGED:
            return "" if result.verdict.works else verdict
        case Standing.WORSE | Standing.NEW:
            return verdict


def _message(result: Result) -> str:
    message = headline(result)
    if result.verdict is Verdict.NOT_RUN:
        return message or result.verdict.value
    found = verdict_text(result.verdict, result.cause)
    if result.standing.is_difference and result.expectation.verdict is not None:
        expected = verdict_text(result.expectation.verdict, result.expectation.cause)
        found = f"{found}, expected {expected}"
    return f"{found}: {message}" if message else found


def _skipped(message: str, kind: str, text: str) -> junitparser.Skipped:
    skipped = junitparser.Skipped(one_line(message), kind)
    # Never empty: one of the readers takes `<skipped/>` for a test that passed.
    skipped.text = head(text or message, _TEXT_LIMIT)
    return skipped


def _class_name(cell: str, category: str) -> str:
    """`3_12-2_4/bytecode`: the cell and the category, without any dot."""
    name = f"{cell}/{category}" if category else cell
    return one_line(name).replace(".", "_")
