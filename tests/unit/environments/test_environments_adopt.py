"""An interpreter of somebody else's becomes an environment as it is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from harness.environments import EnvironmentStore
from harness.errors import HarnessError
from tests.unit.environments.fakes import NOON

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform == "win32", reason="the fake interpreters are shell scripts"),
]


@pytest.fixture
def store(tmp_path: Path) -> EnvironmentStore:
    return EnvironmentStore(tmp_path / "store", env=os.environ, now=NOON)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python_with(folder: Path, **torch: str) -> Path:
    """A Python beside whose packages these files of a torch stand."""
    (folder / "site/torch").mkdir(parents=True)
    for name, text in torch.items():
        (folder / f"site/torch/{name}.py").write_text(text)
    info = folder / "site/Torch-2.4.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Torch\nVersion: 2.4.0\n")
    run = f'PYTHONPATH={folder}/site exec {sys.executable} -S "$@"'
    return script(folder / "python", run)


def test_its_packages_are_read_and_nothing_is_written(
    store: EnvironmentStore, tmp_path: Path
) -> None:
    python = python_with(
        tmp_path,
        __init__="raise SystemExit('torch must not be imported')",
        version="__version__: str = '2.4.1+cu121'\n",
    )
    before = sorted(tmp_path.rglob("*"))
    environment = store.adopt(python)
    assert sorted(tmp_path.rglob("*")) == before
    assert environment.python == python
    assert environment.torch_version == "2.4.1+cu121"
    assert environment.packages == {"torch": "2.4.1+cu121"}
    assert environment.python_version == ".".join(map(str, sys.version_info[:3]))
    assert (environment.index, environment.root, environment.lock_sha256) == ("adopted", None, "")
    assert environment.lock_file is None
    assert store.verify(environment) == ()
    store.release(environment)
    assert store.standing() == ()


def test_its_id_follows_what_is_in_it(store: EnvironmentStore, tmp_path: Path) -> None:
    python = python_with(tmp_path, __init__="", version="__version__ = '2.4.1'")
    first = store.adopt(python)
    assert store.adopt(python).id == first.id
    (tmp_path / "site/torch/version.py").write_text("__version__ = '2.5.0'")
    assert store.adopt(python).id != first.id


def test_a_torch_that_does_not_say_its_version_has_its_metadatas(
    store: EnvironmentStore, tmp_path: Path
) -> None:
    assert store.adopt(python_with(tmp_path, __init__="")).torch_version == "2.4.0"


def test_without_torch_it_is_refused_with_what_to_do(
    store: EnvironmentStore, tmp_path: Path
) -> None:
    python = script(tmp_path / "python", f'exec {sys.executable} -S "$@"')
    with pytest.raises(HarnessError) as caught:
        store.adopt(python)
    assert caught.value.message == "no torch is installed for this interpreter"
    assert caught.value.where == str(python)
    assert "pip install torch" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("echo 'pyenv: python3.12: command not found' >&2; exit 127", "python3.12: command not"),
        ("exit 3", "status 3"),
        ("echo hello", "status 0"),
    ],
)
def test_what_does_not_run_is_refused(
    store: EnvironmentStore, tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(HarnessError, match=told):
        store.adopt(script(tmp_path / "python", text))


def test_what_is_not_there_is_refused(store: EnvironmentStore, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="No such file"):
        store.adopt(tmp_path / "absent")
