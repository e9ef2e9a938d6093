"""What no text may do, whichever report shows it."""

from __future__ import annotations

import pytest

from harness.reports.plain import clean, count, head, moment, one_line, tail
from tests.unit.reports.examples import NASTY


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("\x1b(Bplain", "plain"),
        ("a\x00b\x08c\x7fd", "abcd"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour"),
        ("tab\tstays", "tab\tstays"),
        ("\ud83d alone", "\ufffd alone"),
        ("\ufffe and \uffff", "\ufffd and \ufffd"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\U0001f525 \u05e9\u05dc", "\U0001f525 \u05e9\u05dc"),
    ],
)
def test_clean_takes_away_what_acts(text: str, kept: str) -> None:
    assert clean(text) == kept


def test_clean_twice_is_clean_once() -> None:
    assert clean(clean(NASTY)) == clean(NASTY)


def test_an_unfinished_escape_of_a_megabyte_takes_no_time() -> None:
    assert len(clean("\x1b]" * 500_000)) < 1_000_000


def test_one_line_has_one_line_of_that_length() -> None:
    assert one_line(" a\n\tb  c ") == "a b c"
    assert one_line("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


def test_what_was_cut_is_said() -> None:
    assert head("abcdef", 6) == "abcdef"
    assert head("abcdef", 4) == "abcd\n[cut: 2 more characters]"
    assert tail("abcdef", 6) == "abcdef"
    assert tail("abcdef", 4) == "[cut: 2 characters before this]\ncdef"


def test_counts_and_moments_are_for_people() -> None:
    assert [count(number, "probe") for number in (0, 1, 1234)] == [
        "0 probes",
        "1 probe",
        "1,234 probes",
    ]
    assert moment("2026-12-01T04:05:06.789Z") == "2026-12-01 04:05 UTC"
    assert moment("2026-12-01T04:05:06+00:00") == "2026-12-01 04:05 UTC"
    assert moment("2026-12-01T04:05:06+02:00") == "2026-12-01T04:05:06+02:00"
