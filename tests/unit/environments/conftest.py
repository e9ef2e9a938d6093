"""A store in a temporary folder whose uv is a fake."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from harness import process
from harness.environments import disk, store, tool
from tests.unit.environments.fakes import FakeUv, World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    uv = FakeUv()
    monkeypatch.setattr(tool, "find_uv", lambda _env: tmp_path / "uv")
    monkeypatch.setattr(process, "run", uv.run)
    monkeypatch.setattr(store, "_PAUSES_S", (0.0, 0.0))
    # However full the disk is that the tests run on.
    monkeypatch.setattr(disk.Disk, "at", lambda _path: disk.Disk(free_bytes=10**11))
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(tmp_path)}
    return World(root=tmp_path / "store", uv=uv, env=env)
