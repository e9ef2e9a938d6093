"""index.html: every mark leads to its evidence, nothing is asked of the network, and it stays light."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
from typing import TYPE_CHECKING

import lxml.html
import pytest

from harness.reports import exhibits
from harness.reports.page import render_page
from harness.results import Findings, NotRunReason, Verdict
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
BUDGET_BYTES = 3_000_000


def parse(page: str) -> lxml.html.HtmlElement:
    return lxml.html.document_fromstring(page)


def mark(root: lxml.html.HtmlElement, anchor: str) -> lxml.html.HtmlElement:
    (found,) = root.xpath("//td[@id=$anchor]", anchor=anchor)
    return found


def words(element: lxml.html.HtmlElement) -> str:
    return " ".join(" ".join(element.itertext()).split())


@pytest.mark.parametrize("kind", KINDS)
def test_every_anchor_is_unique_and_every_link_within_the_page_has_one(
    kind: str, request: pytest.FixtureRequest
) -> None:
    root = parse(render_page(request.getfixturevalue(kind)))
    ids = root.xpath("//@id")
    assert len(ids) == len(set(ids))
    targets = {link.removeprefix("#") for link in root.xpath("//a/@href") if link.startswith("#")}
    assert targets <= set(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_asked_of_the_network(kind: str, request: pytest.FixtureRequest) -> None:
    page = render_page(request.getfixturevalue(kind))
    root = parse(page)
    assert root.xpath("//@src") == []
    assert root.xpath("//link/@href") == ["data:,"]
    assert not re.search(r"@import|url\(", "".join(root.xpath("//style/text()")))
    links = [link for link in root.xpath("//a/@href") if not link.startswith("#")]
    assert all(link == "support.json" or link.startswith("https://") for link in links)
    assert len(root.xpath("//script")) == 1
    assert root.xpath("//@style") == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_lets_this_style_and_this_script_act_and_nothing_else(
    kind: str, request: pytest.FixtureRequest
) -> None:
    root = parse(render_page(request.getfixturevalue(kind)))
    (policy,) = root.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for element in root.xpath("//style | //script"):
        digest = base64.b64encode(hashlib.sha256(element.text.encode()).digest()).decode()
        assert f"{element.tag}-src 'sha256-{digest}'" in policy


def test_a_text_of_a_case_never_becomes_markup(hostile: Findings) -> None:
    page = render_page(hostile)
    root = parse(page)
    assert "<script>alert" not in page
    assert root.xpath("//details[not(summary)]") == []
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on")]
    assert "javascript:" not in "".join(root.xpath("//@href"))
    assert "javascript:alert(1)" in root.text_content()
    assert not re.search("[\x00\x1b\x9b\u202e\ud800-\udfff\ufffe]", page)
    page.encode()


def test_each_mark_leads_to_its_evidence_without_script(realistic: Findings) -> None:
    root = parse(render_page(realistic))
    marks = root.xpath("//table[@class='matrix']/tbody/tr/td")
    shown = {cell.id for cell in realistic.cells if cell.status == "measured"}
    assert len(marks) == sum(result.cell in shown for result in realistic.results)
    refused = mark(root, "mark:gate/decorator:dynamo:3.12-2.3")
    assert words(refused) == "✗ error"
    (evidence,) = root.xpath("//article[@id=$id]", id=refused.xpath("a/@href")[0].removeprefix("#"))
    assert REFUSALS["3.12-2.3"] in words(evidence)
    assert "gate/decorator on dynamo, aot, inductor in 3.12-2.3" in words(evidence)
    assert "compile-matrix run --fresh --reports reports/again --cells 3.12-2.3" in words(evidence)


def test_evidence_holds_what_was_seen(realistic: Findings) -> None:
    root = parse(render_page(realistic))

    def evidence(anchor: str) -> str:
        (link,) = mark(root, anchor).xpath("a/@href")
        return words(root.xpath("//article[@id=$id]", id=link.removeprefix("#"))[0])

    wrong = evidence("mark:bytecode/listcomp_break:inductor:3.13-2.6")
    assert "worse full → wrong (wrong-result)" in wrong
    assert "difference from eager output[0]: 3 items in eager, 1 when compiled" in wrong
    partial = evidence("mark:bytecode/match_class:aot:3.12-2.4")
    assert (
        "2 graph breaks GB0082 Missing bytecode handler: MATCH_CLASS (bytecode/match_class:31)"
        in partial
    )
    assert "captured 2 graphs, 4 operations" in partial
    crash = evidence("mark:models/attention:inductor:3.10-2.0")
    assert "ended by SIGSEGV" in crash
    assert "output, its end Fatal Python error: Segmentation fault" in crash
    error = evidence("mark:environment/no_cxx:inductor:3.12-2.4")
    assert "caused by torch._inductor.exc.InvalidCxxCompiler" in error
    assert "raised at torch/_inductor/codecache.py:612 in cpp_compiler" in error


def test_equal_evidence_stands_once(realistic: Findings) -> None:
    page = render_page(realistic)
    assert page.count("two eager runs differ") == 1
    assert len(parse(page).xpath("//section[@id='evidence']/article")) < 25


def test_every_case_is_there_with_its_source_and_command(realistic: Findings) -> None:
    root = parse(render_page(realistic))
    (article,) = root.xpath("//article[@id='case:bytecode/except_star']")
    assert "return x.sin() + 1" in article.xpath("details/pre")[0].text_content()
    assert words(article.xpath("p")[0]) == "except* handlers inside a compiled function"
    assert article.xpath("p/a/@href") == ["https://github.com/pytorch/pytorch/issues/171274"]
    assert "--cases bytecode/except_star --paths dynamo" in words(article)


def test_heads_say_what_they_are_for(realistic: Findings) -> None:
    root = parse(render_page(realistic))
    assert set(root.xpath("//th/@scope")) == {"col", "row", "rowgroup"}
    assert root.xpath("//th[not(@scope)]") == []
    (column,) = root.xpath("//th[@id='cell:3.12-2.4']")
    assert words(column) == "3.12-2.4 10 of 23 work 2026-12-01"
    assert column.get("abbr") == "3.12-2.4"
    (row,) = root.xpath("//th[@id='row:bytecode/match_class:aot']")
    assert words(row) == "bytecode/match_class aot"


def test_every_mark_has_a_glyph_and_a_word(realistic: Findings) -> None:
    root = parse(render_page(realistic))
    texts = {words(cell).split(" ")[1] for cell in root.xpath("//table[@class='matrix']//td[a]")}
    assert texts == {verdict.value for verdict in Verdict} - {Verdict.NOT_RUN.value}
    assert words(mark(root, "mark:bytecode/match_class:dynamo:3.13-2.15")) == "✓ full better"


def test_unmeasured_cells_are_lines_with_their_reason_not_columns(realistic: Findings) -> None:
    root = parse(render_page(realistic))
    assert len(root.xpath("//table[@class='matrix']/thead//th")) == 1 + 8
    not_run = words(root.get_element_by_id("not-run"))
    assert "3.14-2.9 : no interpreter: no Python 3.14 was found" in not_run
    assert "Caused by: connection reset" in not_run
    grid = words(root.xpath("//table[@class='grid']")[0])
    assert "✗ refused" in grid
    assert "? no interpreter" in grid
    assert "? environment could not be built" in grid


def test_a_gap_is_shown_as_one() -> None:
    cells = (make_cell("3.12-2.4", "2.4.1"), make_cell("3.13-2.6", "2.6.0"))
    results = (
        make_result("3.12-2.4", "a/b", "dynamo"),
        make_result("3.12-2.4", "a/b", "aot", Verdict.WRONG),
        make_result("3.13-2.6", "a/b", "aot", Verdict.NOT_RUN, not_run=NotRunReason.INTERRUPTED),
        make_result("3.13-2.6", "a/c", "aot"),
    )
    findings = Findings(
        cells=cells, cases=(make_case("a/b", ""),), results=results, machines=(), generated=""
    )
    root = parse(render_page(findings))
    rows = root.xpath("//tr[th[@id='row:a/b:dynamo' or @id='row:a/b:aot']]")
    texts = [[words(cell) for cell in row.xpath("td")] for row in rows]
    assert texts == [["✓ full", "·"], ["≠ wrong", "? not-run"]]
    assert "a/b [inductor]" in words(root.get_element_by_id("table"))
    # Paths that disagree each say what they do.
    first = words(root.xpath("//table[@class='grid']//td")[0])
    assert "dynamo ✓ compiles" in first
    assert "aot ✗ fails: wrong" in first


def test_a_cell_whose_main_paths_nobody_probed_is_not_measured_at_a_glance() -> None:
    cell = make_cell("3.12-2.4", "2.4.1")
    result = make_result(cell.id, "a/b", "jit-trace", recompiles=2)
    findings = Findings(cells=(cell,), cases=(), results=(result,), machines=(), generated="")
    root = parse(render_page(findings))
    assert words(root.xpath("//table[@class='grid']//td")[0]) == "· not measured"
    assert root.xpath("//table[@class='ranges']") == []
    assert "1 graph, 2 operations, 2 recompiles" in words(root.get_element_by_id("e1"))


@pytest.mark.parametrize("kind", ["nothing", "unprobed"])
def test_where_nothing_was_probed_it_says_so(kind: str, request: pytest.FixtureRequest) -> None:
    root = parse(render_page(request.getfixturevalue(kind)))
    assert "Nothing was probed" in words(root.xpath("//header")[0])
    assert "There is no mark to show" in words(root.get_element_by_id("table"))


def test_a_small_table_says_nothing_of_being_large(realistic: Findings) -> None:
    assert "This table is large" not in render_page(realistic)


@pytest.mark.slow
def test_a_full_matrix_stays_light() -> None:
    page = render_page(make_large(300, 60))
    assert len(page.encode()) < BUDGET_BYTES


def test_a_large_table_drops_anchors_of_marks_but_no_mark_and_says_so() -> None:
    findings = make_large(60, 20)
    page = render_page(findings)
    root = parse(page)
    assert len(root.xpath("//table[@class='matrix']/tbody/tr/td/a")) == len(findings.results)
    assert root.xpath("//td/@id") == []
    assert "This table is large" in words(root.get_element_by_id("table"))
    ids = set(root.xpath("//@id"))
    targets = {link.removeprefix("#") for link in root.xpath("//a/@href") if link.startswith("#")}
    assert targets <= ids
    # Fifty bytes for each mark is what 300 programs in 60 cells leave.
    assert len(page.encode()) < 60 * len(findings.results) + 500_000


def test_evidence_beyond_the_budget_shrinks_to_its_message_then_to_its_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exhibits, "_WHOLE_BUDGET", 3_000)
    monkeypatch.setattr(exhibits, "_BRIEF_BUDGET", 6_000)
    root = parse(render_page(make_large(120, 2)))
    articles = [words(article) for article in root.xpath("//section[@id='evidence']/article")]
    whole = [text for text in articles if "output, its end" in text]
    brief = [text for text in articles if "Left out" in text and "call_method" in text]
    bare = [text for text in articles if "Left out" in text and "call_method" not in text]
    assert whole
    assert brief
    assert len(bare) == 2  # one for each verdict


def test_stale_columns_are_marked() -> None:
    cell = make_cell("3.12-2.4", "2.4.1")
    old = make_result(cell.id, "a/b", "dynamo", at="2026-01-01T00:00:00Z")
    findings = Findings(
        cells=(cell,), cases=(), results=(old,), machines=(), generated="2026-12-01T00:00:00Z"
    )
    (column,) = parse(render_page(findings)).xpath("//th[@id='cell:3.12-2.4']")
    assert "2026-01-01 stale" in words(column)


def test_an_adopted_cell_is_seen_again_through_its_interpreter() -> None:
    cell = make_cell("3.12-2.4.1-adopted", "2.4.1", era="adopted")
    other = make_unmeasured("3.12-2.4-today", "2.4.1", NotRunReason.NO_WHEEL, "", era="today")
    result = make_result(cell.id, "a/b", "dynamo")
    findings = Findings(cells=(cell, other), cases=(), results=(result,), machines=(), generated="")
    page = render_page(findings)
    assert (
        "compile-matrix run --fresh --reports reports/again --interpreter /path/to/python3.12 --cases a/b"
        in page
    )
    assert "era today" in page


def test_differences_of_folded_cells_lead_to_their_reason(realistic: Findings) -> None:
    results = tuple(
        dataclasses.replace(result, standing=type(result.standing).WORSE)
        if result.cell == "3.12-2.4-cuda"
        else result
        for result in realistic.results
    )
    page = render_page(dataclasses.replace(realistic, results=results))
    assert '<a href="#facts:3.12-2.4-cuda">gate/module [aot] in 3.12-2.4-cuda</a>' in page


def test_snapshot(realistic: Findings, snapshot_html: SnapshotAssertion) -> None:
    page = render_page(realistic)
    # Style and script have their own files: the snapshot is of what is made from findings.
    page = re.sub(r"<(style|script)>.*?</\1>", r"<\1></\1>", page, flags=re.DOTALL)
    page = re.sub(r"sha256-[\w+/=]+", "sha256-…", page)
    assert page == snapshot_html
