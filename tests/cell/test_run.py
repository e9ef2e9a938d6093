"""A whole run in real cells, and all that may happen to one: the table says the same in the end."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import jsonschema
import psutil
import pytest

from tests.cell.bench import (
    ROOT,
    TINY,
    Built,
    Ended,
    harness_environment,
    is_alive,
    machine_in,
    may_mount,
    observations,
    processes_with,
    run_harness,
    small_disk,
    start_harness,
    wait_until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

pytestmark = pytest.mark.cell

TINY_VERDICTS = {
    ("basic/adds", "aot"): "full",
    ("basic/adds", "dynamo"): "full",
    ("basic/breaks", "dynamo"): "partial",
    ("odd/forgets", "dynamo"): "wrong",
    ("odd/is_disabled", "dynamo"): "uncompiled",
}


class Runs:
    """`compile-matrix run` of one selection into one folder, again and again.

    Its children are known by their temporary folder.
    """

    def __init__(self, folder: Path, cells: str, cases: Path) -> None:
        self.reports = folder / "reports"
        self.baseline = folder / "baseline"
        self.temporary = folder / "temporary"
        self.cases = cases
        self.cells = cells
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def journal(self) -> Path:
        return self.reports / "journal.jsonl"

    def arguments(self, *more: str) -> list[str]:
        return [
            "run",
            *(("--cells", self.cells) if self.cells else ()),
            *("--cases", str(self.cases), "--jobs", "2"),
            *("--reports", str(self.reports), "--baseline", str(self.baseline), *more),
        ]

    def run(self, *more: str) -> Ended:
        env = harness_environment(self.temporary)
        return run_harness(self.arguments(*more), env, self.folder)

    def start(self, *more: str, **options: Any) -> subprocess.Popen[str]:
        env = harness_environment(self.temporary, measured=False)
        return start_harness(self.arguments(*more), env, self.folder, **options)

    def files(self) -> dict[str, bytes]:
        """Every file that a run left for its readers."""
        return {
            path.name: path.read_bytes()
            for path in sorted(self.reports.iterdir())
            if not path.name.endswith(".lock")
        }

    def children(self) -> list[int]:
        return processes_with(str(self.temporary))


@pytest.fixture
def tiny(oldest: Built, tmp_path: Path) -> Runs:
    return Runs(tmp_path, oldest.cell.id, TINY)


def verdicts(support: dict[str, Any], cell: str) -> dict[tuple[str, str], str]:
    return {
        (one["case"], one["path"]): one["verdict"]
        for one in support["results"]
        if one["cell"] == cell
    }


# ------------------------------------------------------------------------------------- one run


def test_nox_measures_a_tiny_corpus_and_measures_it_once(newest: Built, tmp_path: Path) -> None:
    runs = Runs(tmp_path, newest.cell.id, TINY)
    nox = (sys.executable, "-m", "nox", "--non-interactive", "-s", "matrix", "--")

    def measure() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (*nox, *runs.arguments()[1:]),
            env=harness_environment(runs.temporary),
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
        )

    first = measure()
    # 1 is the harness's own word for a difference, and nox's for any failure of a session.
    assert first.returncode == 1, first.stdout + first.stderr
    support = json.loads((runs.reports / "support.json").read_bytes())
    assert verdicts(support, newest.cell.id) == TINY_VERDICTS
    schema = json.loads((ROOT / "docs/schema/support.schema.json").read_bytes())
    jsonschema.validate(support, schema)
    cell = support["cells"][newest.cell.id]
    assert cell["status"] == "measured"
    assert cell["packages"]["torch"].startswith(newest.cell.torch)

    suites = ET.parse(runs.reports / "junit.xml").getroot()
    outcomes = {
        case.get("name"): {child.tag for child in case} & {"failure", "error", "skipped"}
        for case in suites.iter("testcase")
    }
    assert len(outcomes) == len(TINY_VERDICTS)
    assert sum(1 for tags in outcomes.values() if tags == {"failure"}) == 2
    assert sum(1 for tags in outcomes.values() if not tags) == 3

    seen = observations(runs.journal)
    assert {(one["case"], one["path"]): one["verdict"] for one in seen} == TINY_VERDICTS
    assert {one["isolation"] for one in seen} <= {"fork", "process"}

    before = runs.files()
    assert set(before) == {
        *("index.html", "journal.jsonl", "junit.xml", "summary.md", "support.json", "support.md")
    }
    again = measure()
    assert again.returncode == 1, again.stdout + again.stderr
    assert runs.files() == before
    assert runs.children() == []


def test_the_exit_status_says_what_is_new(tiny: Runs) -> None:
    first = tiny.run()
    assert first.status == 1, first.stderr
    assert tiny.run("--accept").status == 0
    assert (tiny.baseline / "odd/forgets.yaml").exists()
    after = tiny.run()
    assert after.status == 0, after.stderr
    support = json.loads((tiny.reports / "support.json").read_bytes())
    assert {one["standing"] for one in support["results"]} == {"expected"}


def test_what_nobody_could_look_at_is_no_success(tiny: Runs) -> None:
    tiny.cells = "3.13-2.0"
    ended = tiny.run()
    assert ended.status == 3, ended.stderr
    support = json.loads((tiny.reports / "support.json").read_bytes())
    assert support["cells"]["3.13-2.0"]["reason"] == "no wheel"
    assert {one["verdict"] for one in support["results"]} == {"not-run"}


def test_a_cell_that_is_none_is_a_slip_of_the_user(tiny: Runs) -> None:
    tiny.cells = "3.9-2.0"
    ended = tiny.run()
    assert ended.status == 2
    assert ended.stderr.startswith("error: ")
    assert "3.9-2.0" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not tiny.journal.exists()


def test_an_interpreter_can_be_adopted(oldest: Built, tmp_path: Path) -> None:
    runs = Runs(tmp_path, "", TINY)
    python = str(oldest.environment.python)
    ended = runs.run("--interpreter", python)
    assert ended.status == 1, ended.stderr
    support = json.loads((runs.reports / "support.json").read_bytes())
    cell = f"3.10-{oldest.cell.torch}-adopted"
    assert set(support["cells"]) == {cell}
    assert (support["cells"][cell]["era"], support["cells"][cell]["index"]) == ("adopted",) * 2
    assert verdicts(support, cell) == TINY_VERDICTS


def test_a_malformed_case_stops_no_other(oldest: Built, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_cases(cases, 2)
    (cases / "some/broken.py").write_text(
        '"""Is it read?"""\n# /// case\n# paths = ["dinamo"]\n# ///\n\n\ndef check(compile):\n    pass\n',
        encoding="utf-8",
    )
    runs = Runs(tmp_path, oldest.cell.id, cases)
    ended = runs.run()
    assert ended.status == 2, ended.stderr
    assert f"error: {cases / 'some/broken.py'}:3" in ended.stderr
    assert "dinamo" in ended.stderr
    assert len(observations(runs.journal)) == 4
    assert {one["verdict"] for one in observations(runs.journal)} == {"full"}
    assert (runs.reports / "support.json").exists()


def test_a_case_that_kills_its_server_is_the_only_one_that_crashes(
    oldest: Built, tmp_path: Path
) -> None:
    cases = tmp_path / "cases"
    write_cases(cases, 8)
    hostile = ROOT / "tests/fixtures/cases/crashes_its_parent.py"
    (cases / "some/case_4.py").write_text(hostile.read_text(encoding="utf-8"), encoding="utf-8")
    runs = Runs(tmp_path, oldest.cell.id, cases)
    ended = runs.run()
    assert ended.status == 1, ended.stderr
    found = {(one["case"], one["path"]): one for one in observations(runs.journal)}
    crashed = found.pop(("some/case_4", "dynamo"))
    assert (crashed["verdict"], crashed["signal"]) == ("crash", "SIGSEGV")
    assert "<compile-matrix>/harness/worker/server.py" in crashed["output"]  # of faulthandler
    assert machine_in(crashed, runs.folder) == []
    assert len(found) == 14
    assert {one["verdict"] for one in found.values()} == {"full"}
    assert wait_until(lambda: runs.children() == [])


# ------------------------------------------------------------------- interrupted, killed, no room


def write_cases(folder: Path, count: int) -> None:
    """Quick cases, each on two paths, and each another."""
    (folder / "some").mkdir(parents=True)
    for number in range(count):
        text = (
            f'"""Does adding {number} work?"""\n# /// case\n# paths = ["dynamo", "aot"]\n# ///\n'
            "import torch\n\n\n"
            f"def run(x):\n    return x.sin() + {number}\n\n\n"
            "def inputs():\n    return (torch.arange(3.0),)\n"
        )
        (folder / f"some/case_{number}.py").write_text(text, encoding="utf-8")


def write_waiting_case(folder: Path, until: Path) -> None:
    """A case that goes on once a file is there."""
    text = (
        '"""Does it go on?"""\n# /// case\n# paths = ["dynamo"]\n# ///\n'
        "import pathlib\nimport time\n\nimport torch\n\n\n"
        f"def check(compile):\n    while not pathlib.Path({str(until)!r}).exists():\n"
        "        time.sleep(0.05)\n"
        "    assert compile(lambda x: x + 1)(torch.zeros(1)).item() == 1\n"
    )
    (folder / "some/waiting.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("to", ["the harness", "its whole group"])
def test_an_interrupt_ends_everything_and_the_next_run_goes_on(
    oldest: Built, tmp_path: Path, to: str
) -> None:
    cases, go = tmp_path / "cases", tmp_path / "go"
    write_cases(cases, 4)
    write_waiting_case(cases, go)
    runs = Runs(tmp_path, oldest.cell.id, cases)
    child = runs.start()
    assert wait_until(lambda: len(observations(runs.journal)) == 8 or child.poll() is not None)
    family = [one.pid for one in psutil.Process(child.pid).children(recursive=True)]
    assert len(family) >= 2  # the server, and the case that waits
    (os.kill if to == "the harness" else os.killpg)(child.pid, signal.SIGINT)
    ended = Ended.of(child)
    assert ended.status == 130, ended.stderr
    assert [pid for pid in family if is_alive(pid)] == []
    assert runs.children() == []
    assert "to go on from there" in ended.stderr.lower()
    assert "Traceback" not in ended.stderr

    measured = runs.journal.read_bytes()
    assert len(observations(runs.journal)) == 8
    go.touch()
    after = runs.run()
    assert after.status == 0, after.stderr
    assert runs.journal.read_bytes().startswith(measured)
    assert len(observations(runs.journal)) == 9


def test_an_interrupt_before_anything_runs_ends_everything_too(
    oldest: Built, tmp_path: Path
) -> None:
    cases = tmp_path / "cases"
    write_cases(cases, 1)
    runs = Runs(tmp_path, oldest.cell.id, cases)
    child = runs.start()
    assert wait_until(lambda: runs.children() != [child.pid] and len(runs.children()) > 1)
    os.kill(child.pid, signal.SIGINT)
    ended = Ended.of(child)
    assert ended.status == 130, ended.stderr
    assert runs.children() == []


def test_a_harness_killed_ten_times_comes_to_the_same_table(oldest: Built, tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    write_cases(cases, 16)
    selection = f"{oldest.cell.id},3.13-2.0"
    undisturbed = Runs(tmp_path / "undisturbed", selection, cases)
    assert undisturbed.run().status == 0
    whole = len(observations(undisturbed.journal))
    assert whole == 32

    disturbed = Runs(tmp_path / "disturbed", selection, cases)
    moments = random.Random(20)  # the same ten each time: while it starts, works, and reports
    results = [0, 0, *sorted(moments.sample(range(1, whole), 7)), whole]
    found = set()
    for until in results:
        child = disturbed.start()
        wait_until(reached(child, disturbed.journal, until))
        time.sleep(moments.uniform(0, 1.5 if until == 0 else 0.05))
        child.kill()
        child.communicate()
        # Its servers see that it is gone, end what they run, and go.
        assert wait_until(lambda: disturbed.children() == [])
        found.add(len(observations(disturbed.journal)))
    assert len(found) > 4, "the moments were no different ones"
    final = disturbed.run()
    assert final.status == 0, final.stderr
    assert table(disturbed) == table(undisturbed)


def reached(child: subprocess.Popen[str], journal: Path, count: int) -> Callable[[], bool]:
    """Whether a run has come so far, or to its end."""
    return lambda: len(observations(journal)) >= count or child.poll() is not None


def table(runs: Runs) -> Any:
    """support.json without what the clock and the memory say."""
    text = (runs.reports / "support.json").read_text(encoding="utf-8")
    return without(json.loads(text), ("at", "generated", "seconds", "peak_bytes"))


def without(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: without(item, names) for key, item in value.items() if key not in names}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return value


def test_a_full_disk_loses_nothing_and_the_next_run_goes_on(oldest: Built, tmp_path: Path) -> None:
    """A small disk where one may be mounted, else a bound on the size of any file."""
    cases = tmp_path / "cases"
    write_cases(cases, 12)
    runs = Runs(tmp_path, oldest.cell.id, cases)
    with ExitStack() as ending:
        room = 16 * 1024
        options: dict[str, Any] = {"preexec_fn": lambda: bound_files(room)}
        rubbish = None
        if may_mount():
            runs.reports = ending.enter_context(small_disk(tmp_path / "disk", "size=4m"))
            rubbish, options = runs.reports / "rubbish", {}
            rubbish.write_bytes(b"x" * (4 * 1024 * 1024 - room))
        ended = Ended.of(runs.start(**options))
        assert ended.status == 4, ended.stderr
        first, *others = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
        assert "the disk is full" in first
        assert not others
        assert "Traceback" not in ended.stderr

        measured = runs.journal.read_bytes()
        count = len(observations(runs.journal))
        assert 0 < count < 24
        assert f"{count} result" in first
        assert runs.children() == []
        if rubbish is not None:
            rubbish.unlink()
        after = runs.run()
        assert after.status == 0, after.stderr
        assert runs.journal.read_bytes().startswith(measured)
        assert len(observations(runs.journal)) == 24


def bound_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
