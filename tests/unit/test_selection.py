"""The words that choose cases and paths, and what is said when they choose nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.corpus import Case, load_corpus
from harness.errors import HarnessError, HarnessErrors
from harness.selection import select_cases, select_paths
from harness.worker.paths import PATHS

if TYPE_CHECKING:
    from pathlib import Path

IDS = (
    "bytecode/match_class",
    "bytecode/match_mapping",
    "bytecode/walrus",
    "gate/decorator",
    "gate/deep/nested",
    "solo",
)


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Case, ...]:
    for case_id in IDS:
        file = tmp_path / f"{case_id}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("import torch\n", encoding="utf-8")
    return tuple(sorted(load_corpus([tmp_path]).cases, key=lambda case: IDS.index(case.id)))


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], IDS),
        (["*"], IDS),
        (["bytecode"], IDS[:3]),
        (["bytecode/"], IDS[:3]),
        (["bytecode/*"], IDS[:3]),
        (["*/match*"], IDS[:2]),
        (["bytecode/match_class"], IDS[:1]),
        (["bytecode/match_class.py"], IDS[:1]),
        (["gate"], IDS[3:5]),
        (["gate/deep"], IDS[4:5]),
        (["gat?/de[ce]*"], IDS[3:5]),
        (["solo, bytecode/walrus", "solo"], (IDS[2], IDS[5])),
        ([",solo,"], IDS[5:]),
    ],
)
def test_patterns(cases: tuple[Case, ...], patterns: list[str], expected: tuple[str, ...]) -> None:
    assert tuple(case.id for case in select_cases(cases, patterns)) == expected


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("bytecode/match_clas", "did you mean bytecode/match_class or "),
        ("match_class", "did you mean */match_class or bytecode/match_class?"),
        ("gates/*", "did you mean gate?"),
        ("Bytecode", "did you mean bytecode?"),
        ("zzz", "there are: bytecode, gate, gate/deep"),
    ],
)
def test_a_pattern_that_means_nothing(cases: tuple[Case, ...], pattern: str, hint: str) -> None:
    with pytest.raises(HarnessError) as caught:
        select_cases(cases, ["solo", pattern])
    assert caught.value.message == f"no case is meant by {pattern!r}"
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("pattern", ["", " , "])
def test_an_empty_pattern(cases: tuple[Case, ...], pattern: str) -> None:
    with pytest.raises(HarnessError) as caught:
        select_cases(cases, [pattern])
    assert caught.value.message == "an empty case pattern means nothing"
    assert caught.value.hint == "leave it out to have every case"


def test_all_that_mean_nothing_are_told_at_once(cases: tuple[Case, ...]) -> None:
    with pytest.raises(HarnessErrors) as caught:
        select_cases(cases, ["zzz,bytecode", "yyy"])
    assert [error.message for error in caught.value.errors] == [
        "no case is meant by 'zzz'",
        "no case is meant by 'yyy'",
    ]


def test_no_case_at_all() -> None:
    with pytest.raises(HarnessError) as caught:
        select_cases((), ["bytecode"])
    assert caught.value.hint == "there is no case at all"
    assert select_cases((), []) == ()


def test_folders_are_named_where_there_are_none(cases: tuple[Case, ...]) -> None:
    with pytest.raises(HarnessError) as caught:
        select_cases(cases[-1:], ["zzz"])
    assert caught.value.hint == "there are: solo"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], tuple(PATHS)),
        (["inductor"], ("inductor",)),
        (["inductor*"], ("inductor", "inductor-dynamic", "inductor-cudagraphs")),
        (["inductor,dynamo", "aot"], ("dynamo", "aot", "inductor")),
    ],
)
def test_paths(patterns: list[str], expected: tuple[str, ...]) -> None:
    assert select_paths(patterns) == expected


def test_paths_of_ones_own() -> None:
    assert select_paths(["b*"], ["ba", "a", "bb"]) == ("ba", "bb")


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("inductr", "did you mean inductor or inductor-dynamic?"),
        ("xyz", f"there are: {', '.join(PATHS)}"),
    ],
)
def test_a_path_that_is_none(pattern: str, hint: str) -> None:
    with pytest.raises(HarnessError) as caught:
        select_paths([pattern])
    assert caught.value.message == f"no path is meant by {pattern!r}"
    assert caught.value.hint == hint
