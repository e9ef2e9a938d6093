"""The command line: its help, its words, what it leaves with, and that no traceback gets out."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import __version__, cli
from harness.errors import ExitStatus, HarnessError, HarnessErrors
from tests.unit.projects import Project, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
COMMANDS = ("run", "plan", "report", "merge", "doctor")


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """main() has SIGTERM interrupt; nothing of that may stay."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    return make_project(tmp_path, monkeypatch)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Has every command do something else."""

    def replace(does: Callable[[], Any]) -> None:
        monkeypatch.setattr(cli, "_load", lambda _name: lambda _options: does())

    return replace


def parsers() -> dict[str, argparse.ArgumentParser]:
    (choices,) = [a for a in cli._parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(choices.choices)


# ------------------------------------------------------------------------------------------------ help


def test_the_commands_are_these() -> None:
    assert tuple(parsers()) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_says_what_it_does_with_an_example_that_works(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([name, "--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert (parsers()[name].description or "").endswith(".")
    example = told.partition("example:\n")[2].splitlines()[0]
    words = shlex.split(example)
    assert words[:2] == ["compile-matrix", name]
    assert cli._parser().parse_args(words[1:]).command == name
    assert "130  interrupted" in told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    unexplained = [
        action.dest
        for action in parsers()[name]._actions
        if action.option_strings and not (action.help or "").strip()
    ]
    assert unexplained == []


def test_the_help_of_all_lists_every_command_and_every_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert all(f"\n    {name} " in told for name in COMMANDS)
    for status in ExitStatus:
        assert f"\n  {status.value}  " in told


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"compile-matrix {__version__}\n"


# ------------------------------------------------------------------------------------------- bad words

BAD_WORDS = [
    (["run", "--jobs", "0"], "argument --jobs: '0' is no number from 1 on"),
    (["run", "--jobs", "many"], "argument --jobs: 'many' is no number from 1 on"),
    (["run", "--disk-budget", "lots"], "argument --disk-budget: 'lots' is no size"),
    (["run", "--isolation", "none"], "argument --isolation: invalid choice: 'none'"),
    (["run", "--cel", "3.12-2.4"], "unrecognized arguments: --cel 3.12-2.4"),
    (["plan", "--json", "--github"], "argument --github: not allowed with argument --json"),
    (["plan", "--interpreter", "python3"], "unrecognized arguments: --interpreter python3"),
    (["merge"], "the following arguments are required: JOURNAL"),
    (["frobnicate"], "argument COMMAND: invalid choice: 'frobnicate'"),
    ([], "the following arguments are required: COMMAND"),
    (["plan", "--profile", "quik"], 'there is no profile "quik"'),
    (["plan", "--cells", "3.12-9.9"], '"3.12-9.9" matches no cell'),
    (["plan", "--cells", "3.12"], ""),
    (["plan", "--cells", " , "], "an empty cell pattern means nothing"),
    (["plan", "--cases", "bytecod/*"], "no case is meant by 'bytecod/*'"),
    (["plan", "--cases", ""], "an empty case pattern means nothing"),
    (["plan", "--cases", "./nowhere"], "there is no such folder or file of cases"),
    (["plan", "--paths", "inductr"], "no path is meant by 'inductr'"),
    (["plan", "--project", "nowhere"], "there is no matrix.yaml in this folder"),
    (["run", "--paths", "jit-trace"], "no case of this selection has a path of this selection"),
    (["report"], "there is no such journal"),
    (["report", "--journal", "elsewhere.jsonl"], "there is no such journal"),
    (["merge", "elsewhere.jsonl"], "there is no such journal"),
]


@pytest.mark.parametrize(
    ("words", "message"),
    BAD_WORDS,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_words_are_told_in_one_sentence_with_a_cure(
    project: Project, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert project.call(*words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert len(lines) <= 2
    if "nowhere" not in " ".join(words):  # what stands there says what is to be done
        assert lines[1].startswith("  hint: ")
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("40GB", 40 * 10**9),
        ("500MiB", 500 * 2**20),
        ("1.5 tb", 1_500_000_000_000),
        ("12k", 12_000),
        ("1KiB", 1024),
        ("7", 7),
        ("7B", 7),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert cli._size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1.GB", "1 EB", "1GBB", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write it as 40GB or 500MiB"):
        cli._size(text)


# --------------------------------------------------------------------------------------- exit statuses


@pytest.mark.parametrize("status", ExitStatus)
def test_a_commands_status_is_what_the_process_leaves_with(
    command: Callable[[Callable[[], Any]], None], status: ExitStatus
) -> None:
    command(lambda: status)
    found = cli.main(["doctor"])
    assert (found, type(found)) == (status.value, int)


def raising(error: BaseException) -> Callable[[], None]:
    def does() -> None:
        raise error

    return does


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (
            HarnessError("it is wrong", where="a.yaml:3", hint="mend it"),
            2,
            "error: a.yaml:3: it is wrong\n  hint: mend it\n",
        ),
        (
            HarnessError("the disk is full", status=ExitStatus.OUR_FAULT),
            4,
            "error: the disk is full\n",
        ),
        (
            HarnessErrors((HarnessError("one"), HarnessError("two"))),
            2,
            "error: one\nerror: two\n",
        ),
        (
            ZeroDivisionError("division by zero"),
            4,
            (
                "error: our own fault: ZeroDivisionError: division by zero\n"
                "  hint: --debug shows where; please report it\n"
            ),
        ),
    ],
    ids=["usage", "full disk", "several", "our fault"],
)
def test_an_error_is_told_without_a_traceback(
    command: Callable[[Callable[[], Any]], None],
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    status: int,
    told: str,
) -> None:
    command(raising(error))
    assert cli.main(["plan"]) == status
    assert capsys.readouterr() == ("", told)
    assert cli.main(["plan", "--debug"]) == status
    with_debug = capsys.readouterr().err
    assert with_debug.startswith(told)
    assert "Traceback (most recent call last)" in with_debug
    assert "in does" in with_debug


@pytest.mark.parametrize(
    "interrupt",
    [
        raising(KeyboardInterrupt()),
        lambda: signal.raise_signal(signal.SIGINT),
        lambda: signal.raise_signal(signal.SIGTERM),
    ],
    ids=["raised", "SIGINT", "SIGTERM"],
)
def test_an_interrupted_run_says_how_to_go_on(
    command: Callable[[Callable[[], Any]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    interrupt: Callable[[], None],
) -> None:
    words = ["run", "--cells", "3.12-2.4", "--fresh"]
    monkeypatch.setattr(sys, "argv", ["compile-matrix", *words])
    command(interrupt)
    assert cli.main(words) == 130
    told = capsys.readouterr().err
    assert told.endswith("To go on from there: compile-matrix run --cells 3.12-2.4\n")
    assert "Traceback" not in told


def test_another_command_that_is_interrupted_only_says_so(
    command: Callable[[Callable[[], Any]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(KeyboardInterrupt()))
    assert cli.main(["report"]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


PIPE_SCRIPT = """
import sys
from harness.commands import project
project.find_interpreters = lambda *_args, **_kwargs: {}
from harness.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["little", "much"])
def test_a_reader_that_leaves_early_is_no_error(project: Project, form: tuple[str, ...]) -> None:
    for number in range(150):  # as JSON that is more than a buffer holds, as a table it is less
        project.write_case(f"many/{number}", paths='["dynamo", "aot", "inductor"]')
    reading, writing = os.pipe()
    os.close(reading)
    argv = (sys.executable, "-c", PIPE_SCRIPT, "plan", *form)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    try:
        done = subprocess.run(
            argv, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60, env=env
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.process
def test_the_package_runs_as_a_module() -> None:
    argv = (sys.executable, "-m", "harness", "--version")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, f"compile-matrix {__version__}\n")


@pytest.mark.process
def test_help_does_not_wait_for_what_it_does_not_need() -> None:
    script = (
        "import sys\nfrom harness.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'rich', 'yaml', 'psutil'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    argv = (sys.executable, "-c", script)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_character_that_the_terminal_does_not_have_is_no_error(
    command: Callable[[Callable[[], Any]], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def speak() -> ExitStatus:
        sys.stdout.write("3.10×2.0\n")
        return ExitStatus.OK

    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        command(speak)
        assert cli.main(["plan"]) == 0
    assert (tmp_path / "out").read_text() == "3.10?2.0\n"
