"""support.md: what compiles where comes first, every mark is there, and nothing in it acts."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from harness.reports.markdown import render_markdown
from harness.results import (
    Expectation,
    Findings,
    GraphBreak,
    NotRunReason,
    Raised,
    Standing,
    Verdict,
)
from tests.unit.reports.examples import (
    REFUSALS,
    make_case,
    make_cell,
    make_large,
    make_result,
    make_unmeasured,
)

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

KINDS = ("realistic", "hostile", "nothing", "unprobed")


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_summary_says_what_compiles_where_and_the_exact_refusal(realistic: Findings) -> None:
    text = render_markdown(realistic)
    summary = sections(text)["What compiles where"]
    assert text.index("## What compiles where") < text.index("## The table")
    states = {
        cells[1].strip("` "): [cell.strip("* ") for cell in cells[4:7]]
        for line in summary.splitlines()
        if (cells := line.split("|"))[0] == "" and len(cells) > 7
    }
    for works in ("3.10-2.0", "3.11-2.1", "3.12-2.4", "3.13-2.6", "3.13-2.15"):
        assert states[works] == ["compiles"] * 3
    for refused, words in REFUSALS.items():
        assert states[refused] == ["refused"] * 3
        assert f"`{refused}`:\n\n```text\nRuntimeError: {words}\n```" in summary


def test_every_mark_that_is_not_full_has_its_note(realistic: Findings) -> None:
    parts = sections(render_markdown(realistic))
    marks = re.findall(
        r"\| [^|]*?\b(full|error|wrong|crash|partial|uncompiled) ?(n\d+)?", parts["The table"]
    )
    assert {word for word, note in marks if not note} == {Verdict.FULL.value}
    used = {note for _, note in marks if note}
    assert used <= set(re.findall(r"^\*\*(n\d+)\*\*", parts["Evidence"], flags=re.MULTILINE))
    assert "No working C++ compiler found" in parts["Evidence"]
    assert (
        "GB0082 Missing bytecode handler: MATCH_CLASS (bytecode/match_class:31)"
        in parts["Evidence"]
    )
    assert "Fatal Python error: Segmentation fault" in parts["Evidence"]


def test_rows_are_cases_on_paths_and_columns_are_measured_cells(realistic: Findings) -> None:
    parts = sections(render_markdown(realistic))
    heads = [line for line in parts["The table"].splitlines() if line.startswith("| Case |")]
    assert len(heads) == 8
    assert "`3.12-2.4`" in heads[0]
    assert "3.12-2.4-cuda" not in heads[0]
    assert "| `gate/module` | inductor |" in parts["The table"]
    assert "- `3.12-2.4-cuda`: no CUDA device: nvidia-smi lists no device" in parts["Not run"]
    assert "Caused by: connection reset" in parts["Not run"]


def test_differences_are_told_worse_first(realistic: Findings) -> None:
    differences = sections(render_markdown(realistic))["Differences from the baseline"]
    places = [differences.index(f"**{word}**") for word in ("Worse", "New", "Changed", "Better")]
    assert places == sorted(places)
    assert "(1 of 216)" in differences


@pytest.mark.parametrize("kind", ["nothing", "unprobed"])
def test_where_nothing_was_probed_it_says_so_first(
    kind: str, request: pytest.FixtureRequest
) -> None:
    text = render_markdown(request.getfixturevalue(kind))
    assert text.splitlines()[2].startswith("**Nothing was probed")


@pytest.mark.parametrize("kind", KINDS)
def test_tables_keep_their_columns_and_no_html_is_but_ours(
    kind: str, request: pytest.FixtureRequest
) -> None:
    tokens = (
        MarkdownIt("commonmark")
        .enable("table")
        .parse(render_markdown(request.getfixturevalue(kind)))
    )
    width = columns = 0
    for token in tokens:
        if token.type == "thead_open":
            width = 0
        elif token.type == "th_open":
            width += 1
        elif token.type == "tr_open":
            columns = 0
        elif token.type == "td_open":
            columns += 1
        elif token.type == "tr_close" and columns:
            assert columns == width
        assert token.type != "html_block"
        inline = [child.content for child in token.children or () if child.type == "html_inline"]
        assert set(inline) <= {"<br>", "<code>", "</code>"}


def test_a_large_table_is_bounded_in_evidence_and_says_so() -> None:
    text = render_markdown(make_large(200, 8))
    assert re.search(r"^\d+ messages more are left out here", text, flags=re.MULTILINE)
    assert len(re.findall(r"^\*\*n\d+\*\*", text, flags=re.MULTILINE)) == 150
    assert "n151" not in text


def test_every_list_is_bounded_and_says_how_much_it_left_out() -> None:
    large = make_large(250, 2, ("dynamo",))
    results = tuple(
        dataclasses.replace(result, standing=Standing.NEW, expectation=Expectation())
        for result in large.results
    )
    cells = (
        *large.cells,
        *(
            make_unmeasured(
                f"3.14-2.{place}", f"2.{place}.0", NotRunReason.DISK_FULL, "", evidence=f"e{place}"
            )
            for place in range(14)
        ),
    )
    cases = (*large.cases, *(make_case(f"none/{place:03}", "", ("aot",)) for place in range(210)))
    text = render_markdown(dataclasses.replace(large, results=results, cells=cells, cases=cases))
    assert "There is no baseline yet: what does not work counts as new." in text
    assert "- and 300 more, in `support.json`" in text
    assert "The evidence of 2 more is in `junit.xml`." in text
    assert re.search(r"`none/199 \[aot\]`, and 10 more\.$", text, flags=re.MULTILINE)


def test_a_note_tells_of_a_message_its_exception_does_not_say() -> None:
    cells = tuple(make_cell(f"3.12-2.{place}", f"2.{place}.0") for place in range(14))
    results = tuple(
        make_result(
            cell.id,
            f"a/{case}",
            "dynamo",
            Verdict.ERROR,
            message="short",
            raised=(Raised(type="E", message="long"),),
            breaks=(GraphBreak(reason="r"),) * 25,
            exit_status=9,
        )
        for cell in cells
        for case in range(14)
    )
    findings = Findings(cells=cells, cases=(), results=results, machines=(), generated="")
    note = sections(render_markdown(findings))["Evidence"]
    assert "short\nE: long\ngraph break: r\n" in note
    assert "and 5 more graph breaks\nended with exit status 9" in note
    assert "`3.12-2.11` and 2 more; `a/1` on" in note
    assert note.count(" on dynamo in ") == 12
    assert "; and 2 more." in note


def test_a_gap_and_a_mark_without_words_are_shown_as_they_are() -> None:
    cells = (make_cell("3.12-2.4", "2.4.1"), make_cell("3.13-2.6", "2.6.0"))
    results = (
        make_result("3.12-2.4", "a/b", "dynamo", Verdict.ERROR),
        make_result("3.13-2.6", "a/c", "dynamo"),
    )
    findings = Findings(cells=cells, cases=(), results=results, machines=(), generated="")
    parts = sections(render_markdown(findings))
    assert "| `a/b` | dynamo | ✗ error n1 | · |" in parts["The table"]
    assert "| `a/c` | dynamo | · | ✓ full |" in parts["The table"]
    assert "```" not in parts["Evidence"]


def test_snapshot(realistic: Findings, snapshot_md: SnapshotAssertion) -> None:
    assert render_markdown(realistic) == snapshot_md


def test_snapshot_of_hostile_texts(hostile: Findings, snapshot_md: SnapshotAssertion) -> None:
    assert render_markdown(hostile) == snapshot_md
