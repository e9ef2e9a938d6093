"""Two real cells for the tests in this folder: the oldest pair, and the newest that this machine can have."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import machine
from harness.cell_server import CellServer, cell_environment
from harness.commands.run import open_store
from harness.interpreters import InterpreterFetcher, find_interpreters
from harness.matrix import load_matrix
from tests.cell.bench import ROOT, Bench, Built

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.environments import EnvironmentStore
    from harness.interpreters import Interpreter
    from harness.matrix import Matrix

OLDEST, NEWEST = "3.10-2.0", "newest"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever stands in this folder needs a cell."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cell)


@pytest.fixture(scope="session")
def matrix() -> Matrix:
    return load_matrix(ROOT / "matrix.yaml")


@pytest.fixture(scope="session")
def interpreters(matrix: Matrix) -> dict[str, Interpreter]:
    return find_interpreters([python.version for python in matrix.pythons], env=os.environ)


@pytest.fixture(scope="session")
def store() -> Iterator[EnvironmentStore]:
    """The store that `compile-matrix run` uses here: what it built is not built again."""
    options = argparse.Namespace(cache=None, offline=False, disk_budget=None, keep_envs=False)
    opened = open_store(options, os.environ, on_event=print)
    yield opened
    opened.close()


class Builder:
    """Prepares cells, each once. Fails, and never skips: a cell that is not there was not tested."""

    def __init__(
        self, store: EnvironmentStore, matrix: Matrix, interpreters: dict[str, Interpreter]
    ) -> None:
        self._store, self._matrix, self._interpreters = store, matrix, interpreters
        self._built: dict[str, Built] = {}

    def build(self, pattern: str) -> Built:
        if pattern not in self._built:
            (cell,) = self._matrix.cells(
                [pattern],
                platform=machine.current_platform(),
                found_pythons=frozenset(self._interpreters),
            )
            interpreter = self._interpreters.get(cell.python)
            if interpreter is None:
                answer = InterpreterFetcher(env=os.environ).fetch(cell.python)
                assert not isinstance(answer, str), f"no Python {cell.python} here: {answer}"
                interpreter = answer
            environment = self._store.prepare(cell, self._matrix, interpreter)
            self._built[pattern] = Built(cell=cell, environment=environment)
        return self._built[pattern]


@pytest.fixture(scope="session")
def builder(
    store: EnvironmentStore, matrix: Matrix, interpreters: dict[str, Interpreter]
) -> Builder:
    return Builder(store, matrix, interpreters)


@pytest.fixture(scope="session", params=[OLDEST, NEWEST])
def built(request: pytest.FixtureRequest, builder: Builder) -> Built:
    """A cell with its environment: the test runs once in each of the two."""
    return builder.build(request.param)


@pytest.fixture(scope="session")
def oldest(builder: Builder) -> Built:
    return builder.build(OLDEST)


@pytest.fixture(scope="session")
def newest(builder: Builder) -> Built:
    return builder.build(NEWEST)


@pytest.fixture(scope="session")
def _folder() -> Iterator[Path]:
    # Short and of its own: what pytest keeps would stand in the cells' paths.
    folder = Path(tempfile.mkdtemp(prefix="compile-matrix-tests-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def bench(built: Built, _folder: Path) -> Iterator[Bench]:
    """The cell's warm server, up for all tests that do not end it."""
    env = cell_environment(os.environ, built.environment.python, "cpu")
    folder = _folder / built.cell.id
    server = CellServer(built.environment.python, env, folder, fork=True)
    yield Bench(built=built, server=server, folder=folder)
    server.close()
