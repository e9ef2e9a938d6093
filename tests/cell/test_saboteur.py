"""No case of the corpus passes by itself: with a compiler that does not compile, or not rightly, none works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.corpus import load_corpus
from tests.cell.bench import ROOT
from tests.cell.conftest import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cell.bench import Bench

pytestmark = pytest.mark.cell

in_the_newest = pytest.mark.parametrize("built", [NEWEST], indirect=True, scope="session")

COMPILES_NOTHING = """
def _sabotaged(function=None, **settings):
    return (lambda decorated: decorated) if function is None else function
torch.compile = _sabotaged
"""

COMPILES_TO_ZEROS = """
def _zeros(graph, example_inputs):
    def call(*arguments):
        found = graph(*arguments)
        return tuple(torch.zeros_like(one) if isinstance(one, torch.Tensor) else one for one in found)
    return call
_compile = torch.compile
def _sabotaged(function=None, **settings):
    settings = {**{k: v for k, v in settings.items() if k in ("fullgraph", "dynamic")}, "backend": _zeros}
    if function is None:
        return lambda decorated: _compile(decorated, **settings)
    return _compile(function, **settings)
torch.compile = _sabotaged
"""

SABOTAGED = sorted(
    case.id
    for case in load_corpus([ROOT / "cases"]).cases
    if case.kind != "script" and case.isolation == "fork"
)


def sabotage(case_id: str, means: str, folder: Path) -> Path:
    """A copy of a case in which `torch.compile` is another one."""
    text = (ROOT / f"cases/{case_id}.py").read_text(encoding="utf-8")
    before, line, after = text.partition("\nimport torch\n")
    assert line, f"{case_id} does not import torch on a line of its own"
    file = folder / f"{case_id}.py"
    file.parent.mkdir()
    file.write_text(f"{before}{line}{means}{after}", encoding="utf-8")
    return file


def verdict_under(means: str, case_id: str, bench: Bench, folder: Path) -> str:
    seen = bench.probe(sabotage(case_id, means, folder), "dynamo")
    return str(seen["verdict"])


def test_there_is_something_to_sabotage() -> None:
    assert len(SABOTAGED) > 20


@in_the_newest
@pytest.mark.parametrize("case_id", SABOTAGED)
def test_a_case_that_is_not_compiled_does_not_work(
    bench: Bench, case_id: str, tmp_path: Path
) -> None:
    verdict = verdict_under(COMPILES_NOTHING, case_id, bench, tmp_path)
    assert verdict in ("uncompiled", "unavailable")


@in_the_newest
@pytest.mark.parametrize("case_id", SABOTAGED)
def test_a_case_that_is_compiled_to_zeros_does_not_work(
    bench: Bench, case_id: str, tmp_path: Path
) -> None:
    verdict = verdict_under(COMPILES_TO_ZEROS, case_id, bench, tmp_path)
    assert verdict in ("wrong", "error", "uncompiled", "unavailable")
