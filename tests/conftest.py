"""Keeps the unit tests honest: no connection leaves this machine, and no process starts unnoticed."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNIT = Path(__file__).parent / "unit"
STARTERS = ("fork", "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "system", "startfile")


def _stays_here(address: object) -> bool:
    """Whether a socket address is on this machine: loopback, or no network address at all."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0])
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def _guard(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a unit test that reaches out, even where the code under test swallows the refusal."""
    if UNIT not in request.path.parents:
        yield
        return
    refused: list[str] = []

    def refuse(what: str) -> None:
        refused.append(what)
        raise AssertionError(what)

    if request.node.get_closest_marker("network") is None:
        _guard_sockets(monkeypatch, refuse)
    if request.node.get_closest_marker("process") is None:
        _guard_processes(monkeypatch, refuse)
    yield
    if refused:
        pytest.fail("; ".join(refused), pytrace=False)


def _guard_sockets(monkeypatch: pytest.MonkeyPatch, refuse: Callable[[str], None]) -> None:
    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, *args: Any) -> Any:
            if not _stays_here(args[-1]):
                refuse(f"a unit test connects to {args[-1]!r} (mark it `network`, or fake it)")
            return original(self, *args)

        return connect

    original_lookup = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _stays_here((name,)):
            refuse(f"a unit test looks up {name!r} (mark it `network`, or fake it)")
        return original_lookup(host, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, guarded(name))
    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def _guard_processes(monkeypatch: pytest.MonkeyPatch, refuse: Callable[[str], None]) -> None:
    def popen(_self: object, args: object, *_args: Any, **_kwargs: Any) -> None:
        refuse(f"a unit test starts {args!r} (mark it `process`, or fake it)")

    def starter(name: str) -> Callable[..., None]:
        def start(*args: Any, **_kwargs: Any) -> None:
            refuse(f"a unit test calls os.{name}{args!r} (mark it `process`, or fake it)")

        return start

    monkeypatch.setattr(subprocess.Popen, "__init__", popen)
    for name in STARTERS:
        if hasattr(os, name):
            monkeypatch.setattr(os, name, starter(name))
