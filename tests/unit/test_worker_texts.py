"""What is published of a probe says nothing of the machine, and reads the same wherever it ran."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.worker import texts

if TYPE_CHECKING:
    from collections.abc import Callable

HARNESS = Path(__file__).parents[2]
FILE = "/home/someone/project/cases/gate/decorator.py"


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], object]:
    monkeypatch.setattr(sys, "prefix", "/home/someone/.cache/compile matrix/environments/4da1")
    monkeypatch.setattr(sys, "base_prefix", "/opt/python3.12.1")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/scratch/tmp")
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "/home/someone")
    request = {"file": FILE, "case": "gate/decorator", "root": "/scratch/tmp/x/probe-7"}
    pairs = texts.cleaner(request)
    return lambda value: texts.clean(value, pairs)


@pytest.mark.parametrize(
    ("told", "cleaned"),
    [
        (f'File "{FILE}", line 3', 'File "gate/decorator.py", line 3'),
        ("/scratch/tmp/x/probe-7/inductor/ab/cab.py", "<probe>/inductor/ab/cab.py"),
        ("/scratch/tmp/other", "<tmp>/other"),
        ("/home/someone/notes", "~/notes"),
        ("g++ -I/home/someone/include", "g++ -I~/include"),
        ("/opt/python3.12.1/include/python3.12", "<python>/include/python3.12"),
        (
            "/home/someone/.cache/compile matrix/environments/4da1/bin/python",
            "<environment>/bin/python",
        ),
        # Installed packages and the standard library, whatever stands above them.
        (
            "/home/someone/.cache/compile matrix/environments/4da1/lib/python3.12/site-packages/torch/x.py",
            "torch/x.py",
        ),
        ("/opt/elsewhere/lib/python3.12/site-packages/torch/x.py", "torch/x.py"),
        ("/opt/python3.12.1/lib/python3.12/contextlib.py", "python3.12/contextlib.py"),
        ("/usr/lib/python3.11/ast.py", "python3.11/ast.py"),
        ('File "C:\\venv\\Lib\\site-packages\\torch\\x.py", line 3', 'File "torch\\x.py", line 3'),
        ("'C:\\\\venv\\\\Lib\\\\site-packages\\\\torch\\\\x.py'", "'torch\\\\x.py'"),
        ("a/lib/b, /usr/include/x.h: no", "a/lib/b, /usr/include/x.h: no"),
        # The harness's own frames.
        (f"{HARNESS}/harness/worker/oracle.py", "<compile-matrix>/harness/worker/oracle.py"),
        # Only whole names.
        ("/home/someoneelse/notes", "/home/someoneelse/notes"),
        ("/scratch/tmpfiles and /scratch/tmp-2", "/scratch/tmpfiles and /scratch/tmp-2"),
        ("in /home/someone.", "in ~."),
        # Addresses, but no other numbers.
        ("<function f at 0x7fb8f431c680>", "<function f at 0x…>"),
        ("<x at 0x000001F3A2B4C5D6>", "<x at 0x…>"),
        ("opcode 0x1F, flags 0xff00", "opcode 0x1F, flags 0xff00"),
        ("", ""),
    ],
)
def test_the_machine_is_taken_out_of_a_text(
    clean: Callable[[object], object], told: str, cleaned: str
) -> None:
    assert clean(told) == cleaned


def test_texts_are_cleaned_wherever_they_stand(clean: Callable[[object], object]) -> None:
    seen = {
        "message": "at 0x7fb8f431c680",
        "breaks": [{"file": FILE, "line": 3}],
        "seconds": 0.5,
        "raised": [{"bases": ["a.B"], "frame": "/home/someone/x.py:3 in f"}],
        "exit_status": None,
    }
    assert clean(seen) == {
        "message": "at 0x…",
        "breaks": [{"file": "gate/decorator.py", "line": 3}],
        "seconds": 0.5,
        "raised": [{"bases": ["a.B"], "frame": "~/x.py:3 in f"}],
        "exit_status": None,
    }
    assert seen["breaks"] == [{"file": FILE, "line": 3}]


def test_paths_of_windows_are_known_in_each_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "C:\\Users\\Some One")
    request = {"file": "D:\\cases\\gate\\x.py", "case": "gate/x"}
    pairs = texts.cleaner(request)
    for told in ("C:\\Users\\Some One\\a", "C:/Users/Some One/a", "'C:\\\\Users\\\\Some One\\\\a'"):
        assert "Some One" not in texts.clean(told, pairs)
    assert texts.clean("D:\\cases\\gate\\x.py:3", pairs) == "gate/x.py:3"


def test_the_longest_name_is_replaced_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "/data")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/data/tmp")
    pairs = texts.cleaner({"file": "/data/tmp/cases/x.py", "case": "cases/x"})
    told = "/data/tmp/cases/x.py /data/tmp/y /data/z"
    assert texts.clean(told, pairs) == "cases/x.py <tmp>/y ~/z"


def test_a_link_is_known_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    pairs = texts.cleaner({"file": "/x/y.py", "case": "y", "root": str(tmp_path / "link")})
    for name in ("link", "real"):
        assert texts.clean(f"{tmp_path / name}/out.txt", pairs) == "<probe>/out.txt"


def test_a_home_that_is_everywhere_replaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda _path: "/")
    pairs = texts.cleaner({"file": "/x/y.py", "case": "y"})
    assert texts.clean("/etc/passwd", pairs) == "/etc/passwd"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n\n  one  \ntwo", "one"),
        (
            "backend='inductor' raised:\nInvalidCxxCompiler: none\n\nmore",
            "backend='inductor' raised: InvalidCxxCompiler: none",
        ),
        ("backend='inductor' raised:", "backend='inductor' raised:"),
        (
            "Missing bytecode handler\n  Explanation: Dynamo does not know it.\n  Hint: none",
            "Missing bytecode handler: Dynamo does not know it.",
        ),
        ('\n\nfrom user code:\n   File "x.py", line 3\n    print(x)', ""),
        ("412\n\nfrom user code:\n  x", "412"),
        ("x" * 900, "x" * 500),
    ],
)
def test_the_headline_of_a_text_is_what_it_says_first(text: str, line: str) -> None:
    assert texts.headline(text) == line


def test_an_exception_that_cannot_speak_says_nothing() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert texts.text_of(Mute()) == ""
    assert texts.text_of(ValueError("it")) == "it"
