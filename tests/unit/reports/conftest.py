"""Findings to render, made once; `examples.py` says what is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from tests.unit.reports import examples

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from harness.results import Findings


@pytest.fixture(scope="session")
def realistic() -> Findings:
    return examples.make_realistic()


@pytest.fixture(scope="session")
def hostile() -> Findings:
    return examples.make_hostile()


@pytest.fixture(scope="session")
def nothing() -> Findings:
    return examples.make_nothing()


@pytest.fixture(scope="session")
def unprobed() -> Findings:
    return examples.make_unprobed()


def _extension(suffix: str) -> type[SingleFileSnapshotExtension]:
    class TextFile(SingleFileSnapshotExtension):
        _write_mode = WriteMode.TEXT
        file_extension = suffix

    return TextFile


@pytest.fixture
def snapshot_json(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(_extension("json"))


@pytest.fixture
def snapshot_md(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(_extension("md"))


@pytest.fixture
def snapshot_html(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(_extension("html"))


@pytest.fixture
def snapshot_xml(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(_extension("xml"))


@pytest.fixture
def snapshot_txt(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(_extension("txt"))
