"""What is told of one mark, and marks told together."""

from __future__ import annotations

from typing import Any

import pytest

from harness.reports.evidence import (
    break_text,
    change_text,
    describe,
    find_places,
    group_by_message,
    headline,
    refusal_words,
    reproduction,
)
from harness.results import Cause, GraphBreak, NotRunReason, Raised, Verdict
from tests.unit.reports.examples import make_cell, make_result

CELL = make_cell("3.12-2.4", "2.4.1")


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        ({"message": "first\nsecond"}, "first second"),
        ({"not_run": NotRunReason.NO_DEVICE}, "no CUDA device"),
        ({"not_run": NotRunReason.NO_DEVICE, "message": "none"}, "no CUDA device: none"),
        ({"raised": (Raised(type="builtins.ValueError", message="no"),)}, "ValueError: no"),
        ({"raised": (Raised(type="a.StopHere", message=""),)}, "a.StopHere"),
        ({"difference": "1 is not 2"}, "1 is not 2"),
        ({"breaks": (GraphBreak(reason="missing: X"),)}, "missing: X"),
        ({"signal": "SIGKILL"}, "ended by SIGKILL"),
        ({"exit_status": 3}, "exit status 3"),
        ({}, ""),
    ],
)
def test_the_headline_is_the_best_that_is_known(seen: dict[str, Any], line: str) -> None:
    result = make_result("3.12-2.4", "a/b", "dynamo", Verdict.ERROR, **seen)
    assert headline(result) == line


def test_a_refusal_without_an_exception_is_told_by_its_message() -> None:
    result = make_result("3.12-2.4", "a/b", "dynamo", Verdict.ERROR, message="not\nsupported")
    assert refusal_words(result) == "not\nsupported"


def test_a_break_says_what_torch_said_and_no_more() -> None:
    assert break_text(GraphBreak(reason="r", code="GB0001", file="f", line=3)) == "GB0001 r (f:3)"
    assert break_text(GraphBreak(reason="r", file="f")) == "r (f)"
    assert break_text(GraphBreak(reason="")) == "no reason given"


def test_a_change_names_a_cause_once() -> None:
    result = make_result(
        "3.12-2.4", "a/b", "aot", Verdict.CRASH, cause=Cause.CRASH, expected=Verdict.FULL
    )
    assert change_text(result) == "full -> crash"


def test_a_description_is_bounded_and_keeps_the_command() -> None:
    long = "x" * 1_000_000
    result = make_result(
        "3.12-2.4",
        "a/b",
        "dynamo",
        Verdict.ERROR,
        message=long,
        raised=(Raised(type="E", message=long),) * 50,
        breaks=(GraphBreak(reason=long),) * 50,
        difference=long,
        output=long,
        traceback=long,
        signal=long,
        exit_status=1,
    )
    text = describe(result, CELL)
    assert len(text) < 50_000
    assert (
        "again: compile-matrix run --fresh --reports reports/again --cells 3.12-2.4 --cases a/b --paths dynamo"
        in text
    )
    assert "graph breaks: 50" in text
    assert "  and 30 more" in text
    assert ", with exit status 1" in text


def test_a_command_can_be_pasted_into_a_shell() -> None:
    assert reproduction(CELL, "it's; rm -rf", "dynamo").endswith(
        """--cases 'it'"'"'s; rm -rf' --paths dynamo"""
    )


def test_places_join_what_goes_together() -> None:
    results = [
        make_result(cell, case, path)
        for case, path, cell in (
            ("a/b", "dynamo", "1"),
            ("a/b", "dynamo", "2"),
            ("a/b", "aot", "1"),
            ("a/b", "aot", "2"),
            ("a/b", "inductor", "2"),
            ("a/c", "dynamo", "1"),
        )
    ]
    assert [(place.case, place.paths, place.cells) for place in find_places(results)] == [
        ("a/b", ("dynamo", "aot"), ("1", "2")),
        ("a/b", ("inductor",), ("2",)),
        ("a/c", ("dynamo",), ("1",)),
    ]


def test_groups_are_of_one_message_and_the_largest_comes_first() -> None:
    results = [
        make_result("3.12-2.4", f"a/{place}", "dynamo", Verdict.ERROR, message=message)
        for place, message in enumerate(("rare", "often", "often"))
    ]
    groups = group_by_message(results)
    assert [(group.message, len(group.results)) for group in groups] == [("often", 2), ("rare", 1)]
