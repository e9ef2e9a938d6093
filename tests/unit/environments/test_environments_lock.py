"""Lock files: what is asked, what is read, and parts of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.environments.index import IndexProbe, _is_direct
from harness.environments.lock import (
    Lock,
    LockedPackage,
    Request,
    _packages_of,
    _project_of,
    read_lock,
)

if TYPE_CHECKING:
    from pathlib import Path

TEXT = b"""\
lock-version = "1.0"
created-by = "uv"
requires-python = ">=3.11.7"

[[packages]]
name = "numpy"
version = "2.4.6"
wheels = [{ url = "https://files/numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl", size = 5, hashes = { sha256 = "89" } }]

[[packages]]
name = "torch"
version = "2.13.0+cpu"
wheels = [{ url = "https://index/cpu/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl", hashes = { sha256 = "67" } }]

[[packages]]
name = "direct"
version = "1.0"
archive = { url = "https://files/direct-1.0-py3-none-any.whl?x=1#y", hashes = { sha256 = "01" } }
"""

REQUEST = Request(
    torch="2.13.0",
    era="release",
    as_of="2026-07-15T00:00:00Z",
    day="",
    requirements=("numpy", 'setuptools; python_version >= "3.12"'),
    python_version="3.11.7",
    platform="linux-x86_64",
    index="default",
)
CPU = replace(REQUEST, index="pytorch-cpu", cpu_index="https://index/cpu")


def test_packages_are_read_with_their_files_and_sizes() -> None:
    assert _packages_of(TEXT) == (
        LockedPackage(
            name="numpy",
            version="2.4.6",
            file="numpy-2.4.6-cp311-cp311-manylinux_2_28_x86_64.whl",
            size_bytes=5,
        ),
        LockedPackage(
            name="torch",
            version="2.13.0+cpu",
            file="torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl",
            size_bytes=None,
        ),
        LockedPackage(
            name="direct", version="1.0", file="direct-1.0-py3-none-any.whl", size_bytes=None
        ),
    )


def test_a_part_of_a_lock_is_a_lock() -> None:
    lock = Lock(request=REQUEST, text=TEXT, packages=_packages_of(TEXT))
    part = lock.only(frozenset({"torch", "direct"}))
    assert part.startswith(TEXT[:80])
    assert [package.name for package in _packages_of(part)] == ["torch", "direct"]
    assert lock.only(frozenset({"numpy", "torch", "direct"})) == TEXT


@pytest.mark.parametrize("text", [b"", b"[[packages", b"\xff", b'[[packages]]\nname = "x"\n'])
def test_what_is_no_lock_is_none(tmp_path: Path, text: bytes) -> None:
    folder = tmp_path / REQUEST.key
    folder.mkdir()
    (folder / "pylock.toml").write_bytes(text)
    assert read_lock(tmp_path, REQUEST) is None


def test_the_key_follows_every_part_of_the_request() -> None:
    changed = {
        "torch": "2.13.1",
        "era": "today",
        "as_of": "",
        "day": "2026-12-01",
        "requirements": (),
        "python_version": "3.11.8",
        "platform": "linux-aarch64",
        "index": "pytorch-cpu",
        "cpu_index": "https://index",
        "default_index": "https://mirror",
    }
    keys = {replace(REQUEST, **{name: value}).key for name, value in changed.items()}  # type: ignore[arg-type]
    assert len(keys | {REQUEST.key}) == len(changed) + 1
    assert replace(REQUEST).key == REQUEST.key


def test_the_default_index_is_asked_for_the_release() -> None:
    text = _project_of(REQUEST)
    assert r'["torch==2.13.0", "numpy", "setuptools; python_version >= \"3.12\""]' in text
    assert "tool.uv" not in text


@pytest.mark.parametrize(
    ("platform", "torch"), [("linux-x86_64", "2.13.0+cpu"), ("linux-aarch64", "2.13.0")]
)
def test_pytorchs_index_is_asked_for_torch_alone(platform: str, torch: str) -> None:
    text = _project_of(replace(CPU, platform=platform))
    assert f'"torch=={torch}"' in text
    assert 'torch = { index = "pytorch-cpu" }' in text
    assert 'url = "https://index/cpu"\nexplicit = true' in text


@pytest.mark.parametrize(
    ("host", "no_proxy", "is_direct"),
    [
        ("index.example", "", False),
        ("index.example", "*", True),
        ("index.example", "localhost, .example", True),
        ("index.example", "index.example", True),
        ("index.example", "dex.example", False),
        ("index.example", "example.org,", False),
    ],
)
def test_hosts_that_need_no_proxy(host: str, no_proxy: str, is_direct: bool) -> None:
    assert _is_direct(host, no_proxy) is is_direct


def test_an_index_that_does_not_answer_costs_its_limit_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import time

    asked: list[str] = []

    def hang(index: str, *_arguments: object) -> bool:
        asked.append(index)
        time.sleep(1)
        return True

    monkeypatch.setattr("harness.environments.index._lists_torch", hang)
    probe = IndexProbe(env={}, limit_s=0.1)
    begun = time.monotonic()
    assert [probe.answers("https://a"), probe.answers("https://a")] == [False, False]
    assert time.monotonic() - begun < 0.9
    assert asked == ["https://a"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/cpu", "nonsense", "file:///nowhere"])
def test_what_cannot_be_asked_does_not_answer(url: str) -> None:
    assert not IndexProbe(env={}).answers(url)
