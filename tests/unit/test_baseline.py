"""What is expected: read, held against what was found, and accepted."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from harness.baseline import Baseline, load_baseline, render, stand, write_baseline
from harness.errors import ExitStatus, HarnessError, HarnessErrors
from harness.results import (
    Cause,
    Expectation,
    Findings,
    Observation,
    Result,
    Standing,
    Verdict,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "baseline"
GOOD = FIXTURES / "good-written.yaml"
BAD = sorted(FIXTURES.glob("bad-*.yaml"))

FULL, PARTIAL, UNCOMPILED = Verdict.FULL, Verdict.PARTIAL, Verdict.UNCOMPILED
FAILING = (Verdict.ERROR, Verdict.CRASH, Verdict.TIMEOUT, Verdict.OUT_OF_MEMORY)
NOT_PROBED = (Verdict.UNAVAILABLE, Verdict.NOT_RUN)
RANKED = ((FULL,), (PARTIAL,), (UNCOMPILED,), FAILING, (Verdict.WRONG,))
"""From the best to the worst; within one rank none is better."""


def rank(verdict: Verdict) -> int:
    return next(number for number, rank in enumerate(RANKED) if verdict in rank)


PROBED = [verdict for rank in RANKED for verdict in rank]


def expected(verdict: Verdict | None, cause: Cause | None = None) -> Expectation:
    return Expectation(verdict=verdict, cause=cause)


def findings(*found: tuple[str, str, str, Verdict, Cause | None]) -> Findings:
    results = tuple(
        Result(
            observation=Observation(cell=cell, case=case, path=path, verdict=verdict),
            cause=cause,
            expectation=Expectation(),
            standing=Standing.EXPECTED,
        )
        for case, path, cell, verdict, cause in found
    )
    return Findings(cells=(), cases=(), results=results, machines=(), generated="")


def load(folder: Path, file: Path) -> Baseline:
    (folder / "some").mkdir()
    shutil.copy(file, folder / "some")
    return load_baseline(folder)


def tree(folder: Path) -> dict[str, bytes]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


# ------------------------------------------------------------------------------------------- standing


@pytest.mark.parametrize("known", [None, *Verdict])
@pytest.mark.parametrize("verdict", NOT_PROBED)
def test_what_was_not_probed_is_never_a_difference(verdict: Verdict, known: Verdict | None) -> None:
    assert stand(verdict, None, expected(known)) is Standing.EXPECTED


@pytest.mark.parametrize("known", [None, *NOT_PROBED])
def test_where_nothing_is_known_only_what_works_is_expected(known: Verdict | None) -> None:
    for verdict in (FULL, PARTIAL):
        assert stand(verdict, None, expected(known)) is Standing.EXPECTED
    for verdict in (UNCOMPILED, *FAILING, Verdict.WRONG, Verdict.INVALID):
        assert stand(verdict, Cause.UNKNOWN, expected(known)) is Standing.NEW


@pytest.mark.parametrize("known", PROBED)
@pytest.mark.parametrize("verdict", PROBED)
def test_better_and_worse(verdict: Verdict, known: Verdict) -> None:
    if verdict is known:
        standing = Standing.EXPECTED
    elif rank(verdict) == rank(known):
        standing = Standing.CHANGED
    else:
        standing = Standing.BETTER if rank(verdict) < rank(known) else Standing.WORSE
    assert stand(verdict, None, expected(known)) is standing


@pytest.mark.parametrize("other", PROBED)
def test_invalid_is_neither_better_nor_worse_but_always_a_difference(other: Verdict) -> None:
    assert stand(Verdict.INVALID, Cause.EAGER_FAILED, expected(other)) is Standing.CHANGED
    assert stand(other, None, expected(Verdict.INVALID)) is Standing.CHANGED


@pytest.mark.parametrize("verdict", [*PROBED, Verdict.INVALID])
def test_another_cause_is_a_change_unless_none_was_named(verdict: Verdict) -> None:
    known = expected(verdict, Cause.GRAPH_BREAK)
    assert stand(verdict, Cause.GRAPH_BREAK, known) is Standing.EXPECTED
    assert stand(verdict, Cause.CRASH, known) is Standing.CHANGED
    assert stand(verdict, None, known) is Standing.CHANGED
    assert stand(verdict, Cause.CRASH, expected(verdict)) is Standing.EXPECTED


def test_a_cause_does_not_soften_a_loss() -> None:
    known = expected(FULL)
    assert stand(Verdict.ERROR, Cause.GRAPH_BREAK, known) is Standing.WORSE
    assert stand(PARTIAL, Cause.CRASH, expected(Verdict.ERROR, Cause.CRASH)) is Standing.BETTER


def test_no_verdict_is_forgotten_here() -> None:
    assert {*PROBED, Verdict.INVALID, *NOT_PROBED} == set(Verdict)


# -------------------------------------------------------------------------------------------- reading


def test_the_fixtures_are_there() -> None:
    assert len(BAD) >= 9


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_mistake_is_told_with_its_place_and_its_cure(tmp_path: Path, file: Path) -> None:
    with pytest.raises(HarnessErrors) as caught:
        load(tmp_path, file)
    place = str(tmp_path / "some" / file.name)
    found = f"{caught.value.render()}\n".replace(place, file.name)
    assert found == file.with_suffix(".txt").read_text(encoding="utf-8")
    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('dynamo:\n  3.10-2.0: "full\n', "3:1"),
        ("dynamo:\n  3.10-2.0: full\n  3.10-2.0: partial\n", "3:3"),
        ("dynamo: {}\naot: {}\ndynamo: {}\n", "3:1"),
        ("dynamo:\n  [3.10-2.0]: full\n", "2:3"),
        ("dynamo: &a {}\naot: *a\n", "2:6"),
        ("aot: {}\n---\naot: {}\n", "2:1"),
    ],
)
def test_what_yaml_itself_or_its_keys_get_wrong_has_its_place(
    tmp_path: Path, text: str, place: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(HarnessErrors) as caught:
        load_baseline(tmp_path)
    assert [error.where for error in caught.value.errors] == [f"{file}:{place}"]


def test_what_a_baseline_says(tmp_path: Path) -> None:
    baseline = load(tmp_path, GOOD)
    case = "some/good-written"
    refused = expected(Verdict.ERROR, Cause.PYTHON_UNSUPPORTED)
    assert baseline.expectation(case, "aot", "3.9-2.0") == refused
    assert baseline.expectation(case, "dynamo", "3.10-2.0") == expected(PARTIAL)
    for unknown in (
        ("some/other", "dynamo", "3.10-2.0"),
        (case, "inductor", "3.10-2.0"),
        (case, "dynamo", "3.13-2.9"),
    ):
        assert baseline.expectation(*unknown) == Expectation()
    assert Baseline().expectation(case, "aot", "3.9-2.0") == Expectation()


def test_what_a_person_writes_is_read_as_well(tmp_path: Path) -> None:
    baseline = load(tmp_path, FIXTURES / "good-by-hand.yaml")
    assert baseline.cases["some/good-by-hand"] == {
        "script": {"3.12-2.4": expected(Verdict.CRASH)},
        "dynamo": {"3.12-2.4": expected(Verdict.INVALID, Cause.EAGER_FAILED)},
        "inductor": {},
    }


def test_no_folder_is_no_baseline_and_other_files_are_none(tmp_path: Path) -> None:
    assert load_baseline(tmp_path / "none") == Baseline()
    (tmp_path / "README.md").write_text("what this is", encoding="utf-8")
    (tmp_path / "v1.yaml").mkdir()
    (tmp_path / "v1.yaml" / "x.y.yaml").write_text("aot: {}\n", encoding="utf-8")
    assert load_baseline(tmp_path).cases == {"v1.yaml/x.y": {"aot": {}}}


def test_all_mistakes_of_all_files_are_told(tmp_path: Path) -> None:
    for file in (*BAD, GOOD):
        shutil.copy(file, tmp_path)
    (tmp_path / "zz.yml").write_text("aot: {}\n", encoding="utf-8")
    (tmp_path / "zzz.yaml").symlink_to(tmp_path / "zzz.yaml")
    with pytest.raises(HarnessErrors) as caught:
        load_baseline(tmp_path)
    told = {Path(error.where.split(":")[0]).name for error in caught.value.errors}
    assert told == {*(file.name for file in BAD), "zz.yml"}
    last = caught.value.errors[-1]
    assert (last.message, last.hint) == ("a baseline ends in .yaml", "rename it to zz.yaml")


def test_a_file_is_no_baseline(tmp_path: Path) -> None:
    file = tmp_path / "baseline"
    file.write_text("", encoding="utf-8")
    with pytest.raises(HarnessErrors) as caught:
        load_baseline(file)
    assert caught.value.render() == f"error: {file}: a baseline is a folder, and this is a file"


def test_a_file_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(HarnessErrors) as caught:
        load(tmp_path, GOOD)
    place = tmp_path / "some" / GOOD.name
    assert caught.value.render() == f"error: {place}: cannot be read: Permission denied"


# ------------------------------------------------------------------------------------------ accepting

FOUND = findings(
    ("some/case", "dynamo", "3.10-2.0", PARTIAL, None),
    ("some/case", "dynamo", "3.9-2.0", FULL, None),
    ("some/case", "dynamo", "3.11-2.0", Verdict.ERROR, Cause.PYTHON_UNSUPPORTED),
    ("some/case", "aot", "3.10-2.0", Verdict.INVALID, Cause.EAGER_FAILED),
    ("some/case", "aot", "3.11-2.0", Verdict.NOT_RUN, None),
    ("some/case", "inductor", "3.10-2.0", Verdict.UNAVAILABLE, None),
    ("other", "script", "3.10-2.0", Verdict.NOT_RUN, None),
)
WRITTEN = """\
# expected results of some/case; written by: compile-matrix run --accept
aot:
  3.10-2.0: invalid eager-failed
dynamo:
  3.9-2.0: full
  3.10-2.0: partial
  3.11-2.0: error python-unsupported
"""


def test_what_was_probed_is_accepted(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline"
    assert write_baseline(baseline, FOUND) == (baseline / "some" / "case.yaml",)
    assert tree(baseline) == {"some/case.yaml": WRITTEN.encode()}


def test_accepted_results_are_expected_from_then_on(tmp_path: Path) -> None:
    write_baseline(tmp_path, FOUND)
    baseline = load_baseline(tmp_path)
    for result in FOUND.results:
        expectation = baseline.expectation(result.case, result.path, result.cell)
        assert stand(result.verdict, result.cause, expectation) is Standing.EXPECTED


def test_nothing_changed_leaves_every_byte(tmp_path: Path) -> None:
    write_baseline(tmp_path, FOUND)
    file = tmp_path / "some" / "case.yaml"
    by_hand = "# my own words\n" + WRITTEN.replace("partial", "'partial' # see the issue")
    file.write_text(by_hand, encoding="utf-8")
    assert write_baseline(tmp_path, FOUND) == ()
    assert file.read_text(encoding="utf-8") == by_hand


def test_other_cells_paths_and_cases_are_not_forgotten(tmp_path: Path) -> None:
    write_baseline(tmp_path, FOUND)
    news = findings(
        ("some/case", "dynamo", "3.10-2.0", FULL, None),
        ("some/case", "dynamo", "3.12-2.4", FULL, None),
        ("some/case", "aot", "3.10-2.0", Verdict.NOT_RUN, None),
        ("a/new", "aot", "3.10-2.0", FULL, None),
    )
    changed = write_baseline(tmp_path, news)
    assert changed == (tmp_path / "a" / "new.yaml", tmp_path / "some" / "case.yaml")
    assert (tmp_path / "some" / "case.yaml").read_text(encoding="utf-8") == WRITTEN.replace(
        "partial", "full"
    ) + "  3.12-2.4: full\n"


def test_what_is_written_can_be_read_whatever_the_ids_are(tmp_path: Path) -> None:
    cells = (
        "3.12-2.4.1+cpu",
        "3.10-2.0-today",
        "odd: id #1",
        "3.10",
        "true",
        "-",
        "10",
        "a2",
        "2a",
    )
    found = findings(*(("c", "aot", cell, FULL, None) for cell in cells))
    write_baseline(tmp_path, found)
    assert set(load_baseline(tmp_path).cases["c"]["aot"]) == set(cells)


def test_the_fixture_is_written_as_it_stands(tmp_path: Path) -> None:
    case = "some/good-written"
    assert render(case, load(tmp_path, GOOD).cases[case]) == GOOD.read_text(encoding="utf-8")


def test_an_empty_path_is_left_out() -> None:
    text = render("x", {"dynamo": {}, "aot": {"3.10-2.0": expected(FULL)}})
    assert text.splitlines()[1:] == ["aot:", "  3.10-2.0: full"]


def test_a_faulty_baseline_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("aot: nothing\n", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(HarnessErrors):
        write_baseline(tmp_path, FOUND)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("case", ["../out", "a/../../out", "/etc/out", "a//b", "", "a\\b", "a b"])
def test_an_id_from_a_strange_journal_writes_nowhere_else(tmp_path: Path, case: str) -> None:
    baseline = tmp_path / "baseline"
    found = findings((case, "aot", "3.10-2.0", FULL, None))
    with pytest.raises(HarnessError, match="names no file below"):
        write_baseline(baseline, found)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("step", ["write_text", "replace"])
def test_a_full_disk_leaves_what_stood_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_baseline(tmp_path, FOUND)
    before = tree(tmp_path)
    monkeypatch.setattr(Path, step, refuse)
    with pytest.raises(HarnessError) as caught:
        write_baseline(tmp_path, findings(("some/case", "aot", "3.10-2.0", FULL, None)))
    assert caught.value.status is ExitStatus.OUR_FAULT
    assert caught.value.message == "cannot be written: No space left on device"
    assert caught.value.where == str(tmp_path / "some" / "case.yaml")
    assert tree(tmp_path) == before
