"""What a user sees of an error, and the numbers that a process leaves with."""

from __future__ import annotations

import pytest

from harness.errors import ExitStatus, HarnessError, HarnessErrors


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (HarnessError("it is wrong"), "error: it is wrong"),
        (HarnessError("it is wrong", where="a.yaml:3:5"), "error: a.yaml:3:5: it is wrong"),
        (HarnessError("it is wrong", hint="mend it"), "error: it is wrong\n  hint: mend it"),
        (
            HarnessError("it is wrong", where="a.yaml", hint="mend it"),
            "error: a.yaml: it is wrong\n  hint: mend it",
        ),
    ],
)
def test_one_sentence_its_place_and_its_cure(error: HarnessError, told: str) -> None:
    assert error.render() == told
    assert str(error) == "it is wrong"
    assert error.status is ExitStatus.USAGE


def test_several_are_told_together_and_leave_with_the_first_ones_status() -> None:
    first = HarnessError("one", where="a:1", hint="mend one", status=ExitStatus.OUR_FAULT)
    both = HarnessErrors((first, HarnessError("two")))
    assert both.render() == "error: a:1: one\n  hint: mend one\nerror: two"
    assert both.status is ExitStatus.OUR_FAULT
    assert (both.message, both.where, both.hint) == ("one", "a:1", "mend one")
    assert len(both.errors) == 2


def test_each_status_means_one_thing() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {
        "OK": 0,
        "DIFFERENT": 1,
        "USAGE": 2,
        "NOTHING_PROBED": 3,
        "OUR_FAULT": 4,
        "INTERRUPTED": 130,
    }
