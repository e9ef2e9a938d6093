"""`report` and `merge`: everything right of the journal, made again from files alone."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.baseline import load_baseline
from harness.commands.project import find_project
from harness.errors import ExitStatus, HarnessError
from harness.findings import judge
from harness.journal import Journal, fresh, read_records
from harness.reports import PUBLISHED, annotation_lines, render_text, write_reports

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from harness.results import Findings, Record

JOURNAL = "journal.jsonl"


def report(options: argparse.Namespace) -> ExitStatus:
    """Writes the reports of the journals named, or of the one in the reports' folder."""
    journals = options.journal or [options.reports / JOURNAL]
    records = read(journals)
    findings = judge(records, load_baseline(baseline_folder(options)))
    if options.publish is not None:
        write_reports(findings, options.publish, PUBLISHED)
    return publish(findings, options.reports)


def merge(options: argparse.Namespace) -> ExitStatus:
    """Joins the journals of several runs or machines into one, and reports on it."""
    records = read(options.journals)
    target = options.reports / JOURNAL
    if any(path.resolve() == target.resolve() for path in options.journals):
        message = "a journal cannot be merged into itself"
        raise HarnessError(message, where=str(target), hint="name another folder: --reports DIR")
    fresh(target)  # what stood there is moved aside, unless a run is writing it
    with Journal.open(target) as journal:
        for record in records:
            journal.append(record)
    findings = judge(records, load_baseline(baseline_folder(options)))
    return publish(findings, options.reports)


def read(journals: Sequence[Path]) -> tuple[Record, ...]:
    """All records of the journals, with a word on stderr about lines that could not be read."""
    reading = read_records(list(journals))
    if reading.torn:
        lines = "line" if reading.torn == 1 else "lines"
        print(f"warning: {reading.torn} {lines} of the journal could not be read", file=sys.stderr)
    return reading.records


def baseline_folder(options: argparse.Namespace) -> Path:
    """Where the expected results stand: as named, else `baseline/` of the project."""
    if options.baseline is not None:
        return Path(options.baseline)
    return find_project(options.project) / "baseline"


def publish(
    findings: Findings, reports: Path, probes: Collection[tuple[str, str, str]] | None = None
) -> ExitStatus:
    """Writes all reports, prints the short table, and chooses the exit status.

    probes: (cell, case, path) of those that a run was about; the table and the status are theirs alone.
    None: everything.
    """
    files = write_reports(findings, reports)
    shown = findings if probes is None else narrowed(findings, probes)
    print(render_text(shown), end="")
    print(f"reports: {', '.join(str(file) for file in files)}", file=sys.stderr)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotation_lines(shown):
            print(line)
    return status_of(shown)


def narrowed(findings: Findings, probes: Collection[tuple[str, str, str]]) -> Findings:
    """The findings on some probes, with their cells and cases."""
    cells = {cell for cell, _, _ in probes}
    cases = {case for _, case, _ in probes}
    return replace(
        findings,
        cells=tuple(cell for cell in findings.cells if cell.id in cells),
        cases=tuple(case for case in findings.cases if case.id in cases),
        results=tuple(r for r in findings.results if (r.cell, r.case, r.path) in probes),
    )


def status_of(findings: Findings) -> ExitStatus:
    """0, 1 or 3. A set of results of which none was probed is never 0."""
    if not any(result.verdict.is_probed for result in findings.results):
        return ExitStatus.NOTHING_PROBED
    if any(result.standing.is_difference for result in findings.results):
        return ExitStatus.DIFFERENT
    return ExitStatus.OK
