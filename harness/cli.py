"""`compile-matrix`: the command line. It reads words and calls a command; what they do is elsewhere."""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from harness import __version__
from harness.errors import ExitStatus, HarnessError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EXIT_STATUS = """exit status:
  0  all was looked at, and nothing differs from what is expected
  1  a verdict differs from what is expected, for worse or for better
  2  the command line, matrix.yaml, a case or the baseline is at fault
  3  nothing was probed
  4  our own fault, or the machine's; what was measured is kept
  130  interrupted; the next run goes on from there"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status. No traceback reaches a user without --debug."""
    _speak_utf8()
    options = _parser().parse_args(argv)
    try:
        if hasattr(signal, "SIGTERM"):
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        command: Callable[[argparse.Namespace], ExitStatus] = _load(options.command)
        status = int(command(options))
        sys.stdout.flush()  # here, and not at the interpreter's end, where nobody could help it
        return status
    except HarnessError as error:
        print(error.render(), file=sys.stderr)
        if options.debug:
            traceback.print_exc()
        return int(error.status)
    except KeyboardInterrupt:
        _say_interrupted(options)
        return int(ExitStatus.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has left (`| head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.OK)
    except Exception as error:  # noqa: BLE001 - the last resort
        text = f"error: our own fault: {type(error).__name__}: {error}"
        print(f"{text}\n  hint: --debug shows where; please report it", file=sys.stderr)
        if options.debug:
            traceback.print_exc()
        return int(ExitStatus.OUR_FAULT)


def _load(name: str) -> Callable[[argparse.Namespace], ExitStatus]:
    """A command by name; imported late, so that `--help` does not wait for pydantic and rich."""
    from harness.commands import doctor, plan, report, run

    commands: dict[str, Callable[[argparse.Namespace], ExitStatus]] = {
        "run": run.run,
        "plan": plan.plan,
        "report": report.report,
        "merge": report.merge,
        "doctor": doctor.doctor,
    }
    return commands[name]


def _say_interrupted(options: argparse.Namespace) -> None:
    again = " ".join(["compile-matrix", *(a for a in sys.argv[1:] if a != "--fresh")])
    text = (
        "interrupted"
        if options.command != "run"
        else (f"interrupted; all that was measured is kept. To go on from there: {again}")
    )
    print(f"\n{text}", file=sys.stderr)


def _speak_utf8() -> None:
    """A terminal that cannot show a character gets a replacement instead of a UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}\n  hint: {self.prog} --help", file=sys.stderr)
        sys.exit(int(ExitStatus.USAGE))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="compile-matrix",
        description="What torch.compile does on which Python and which PyTorch, measured.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    _add_run(commands)
    _add_plan(commands)
    _add_report(commands)
    _add_merge(commands)
    _add_doctor(commands)
    return parser


def _add(
    commands: argparse._SubParsersAction[_Parser], name: str, does: str, example: str
) -> _Parser:
    parser = commands.add_parser(
        name,
        help=does,
        description=does,
        epilog=f"example:\n  {example}\n\n{_EXIT_STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--project",
        type=Path,
        metavar="DIR",
        help="the folder with matrix.yaml (default: here or above)",
    )
    parser.add_argument("--debug", action="store_true", help="show a traceback with an error")
    return parser


def _add_run(commands: argparse._SubParsersAction[_Parser]) -> None:
    does = "Measure the selected cells, and write the reports."
    parser = _add(
        commands, "run", does, "compile-matrix run --cells 3.12-2.4,3.13-* --cases 'bytecode/*'"
    )
    _add_selection(parser)
    _add_reports(parser)
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="FILE",
        help="the journal (default: journal.jsonl in the reports' folder)",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="begin anew: the journal is moved aside"
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="write what is found into the baseline, as what is expected from now on",
    )
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="probes at once (default: the number of cores)"
    )
    parser.add_argument(
        "--record-not-run",
        metavar="REASON",
        help="record the selected cells as not-run for this reason, without looking",
    )
    parser.add_argument(
        "--interpreter",
        type=Path,
        action="append",
        default=[],
        metavar="PYTHON",
        help="use this Python with its torch as a cell; nothing is installed into it; may be repeated",
    )
    _add_store(parser)


def _add_plan(commands: argparse._SubParsersAction[_Parser]) -> None:
    does = "Show what a selection means on this machine, and start nothing."
    parser = _add(commands, "plan", does, "compile-matrix plan --profile full")
    _add_selection(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument(
        "--github",
        action="store_true",
        help="print the lines for GITHUB_OUTPUT: matrix=… and excluded=…",
    )


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    does = "Write the reports again from the journal, without running anything."
    parser = _add(commands, "report", does, "compile-matrix report --reports reports")
    _add_reports(parser)
    parser.add_argument(
        "--journal",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a journal to read instead of the one in the reports' folder; may be repeated",
    )
    parser.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help="also write the table there, for publication: support.json, support.md, index.html",
    )


def _add_merge(commands: argparse._SubParsersAction[_Parser]) -> None:
    does = "Join journals of several runs or machines, and write the reports of all."
    parser = _add(
        commands, "merge", does, "compile-matrix merge journals/*.jsonl --reports reports"
    )
    parser.add_argument("journals", nargs="+", type=Path, metavar="JOURNAL")
    _add_reports(parser)


def _add_doctor(commands: argparse._SubParsersAction[_Parser]) -> None:
    does = "Look at this machine: interpreters, compiler, index, environments that stand, disk."
    parser = _add(commands, "doctor", does, "compile-matrix doctor --json")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    _add_store(parser)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile", metavar="NAME", help="a profile of matrix.yaml (default: quick)"
    )
    parser.add_argument(
        "--cells",
        action="append",
        default=[],
        metavar="CELLS",
        help="cells instead of a profile, such as 3.12-2.4,3.13-*",
    )
    parser.add_argument(
        "--cases",
        action="append",
        default=[],
        metavar="CASES",
        help="cases such as bytecode/*, or a folder or file of your own; may be repeated (default: all of cases/)",
    )
    parser.add_argument(
        "--paths",
        action="append",
        default=[],
        metavar="PATHS",
        help="compile paths such as dynamo,inductor (default: all that a case names)",
    )
    parser.add_argument(
        "--isolation",
        choices=("auto", "process"),
        default="auto",
        help="auto: fork from a warm server where that is safe; process: a fresh process for every probe (default: auto)",
    )


def _add_reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="where the reports go (default: reports)",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="DIR",
        help="expected results (default: baseline/ of the project)",
    )


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="DIR",
        help="where environments stand (default: COMPILE_MATRIX_CACHE, else the user's cache folder)",
    )
    parser.add_argument(
        "--offline", action="store_true", help="open no connection: use what stands in the cache"
    )
    parser.add_argument(
        "--keep-envs", action="store_true", help="evict no environment, however full the disk"
    )
    parser.add_argument(
        "--disk-budget",
        type=_size,
        metavar="SIZE",
        help="what environments may take, such as 40GB (default: what suits the disk)",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        msg = f"{text!r} is no number from 1 on"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", text, re.IGNORECASE)
    if found is None:
        msg = f"{text!r} is no size; write it as 40GB or 500MiB"
        raise argparse.ArgumentTypeError(msg)
    number, letter, binary = found.groups()
    power = " KMGT".index(letter.upper() or " ")
    return int(float(number) * (1024 if binary else 1000) ** power)
