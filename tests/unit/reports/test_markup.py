"""Texts that are not ours, read again by a Markdown reader: what they say stays, what they do does not."""

from __future__ import annotations

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from harness.reports.markup import ZERO_WIDTH_SPACE, block, code, command, prose, table
from harness.reports.plain import clean
from tests.unit.reports.examples import NASTY

TEXTS = (
    NASTY,
    "a|b",
    "`tick`",
    "``two``` three",
    "a\\|b",
    "ends with \\",
    "<b>bold</b> & &lt;",
    "*em* _em_ [l](http://x) ![i](x) ~~s~~ # h",
    "x * y_z__w",
    "a|__b__ _c_",
)


def shown(html: str) -> str:
    """What a reader sees of HTML: its text, without elements."""
    return unescape(re.sub(r"<[^>]*>", "", html)).replace(ZERO_WIDTH_SPACE, "").strip()


def flat(text: str) -> str:
    return " ".join(clean(text).split())


@pytest.mark.parametrize("text", TEXTS)
def test_code_and_prose_say_exactly_the_text(text: str) -> None:
    reader = MarkdownIt("commonmark").enable("table")
    assert shown(reader.render(code(text))) == flat(text)
    if "``" not in text:
        assert shown(reader.render(prose(text))) == flat(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_stays_in_its_cell(text: str) -> None:
    html = (
        MarkdownIt("commonmark")
        .enable("table")
        .render("\n".join(table(("a", "b"), [(code(text), prose(text))])))
    )
    cells = re.findall(r"<td>(.*?)</td>", html, re.DOTALL)
    assert len(cells) == 2
    assert shown(cells[0]) == flat(text)


@pytest.mark.parametrize("text", [*TEXTS, "```\nout\n```", "~~~", "`" * 7])
def test_no_line_ends_a_block(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(block(text))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == f"{clean(text)}\n"


@pytest.mark.parametrize("text", TEXTS)
def test_only_our_own_elements_are_written(text: str) -> None:
    html = MarkdownIt("commonmark").render(f"{code(text)} {prose(text)}")
    assert set(re.findall(r"<[^>]*>", html)) <= {"<p>", "<code>", "</code>", "</p>"}


def test_nobody_is_mentioned_and_no_issue_referred_to() -> None:
    words = prose("@everyone see #123 and GH-7")
    assert not re.search(r"@\w|#\d|GH-\d", words)


def test_double_backticks_are_code_as_in_docstrings() -> None:
    assert prose("``except*`` handlers") == "`except*` handlers"
    assert code("") == ""


def test_a_command_stays_one_command() -> None:
    line = command("error", "50%\n::error::second", title="a: b, c\nd")
    assert line == "::error title=a%3A b%2C c%0Ad::50%25%0A::error::second"
    assert command("warning", "plain") == "::warning::plain"
