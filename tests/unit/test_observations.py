"""Observations keep all that the worker saw, and say of which probe it was."""

from __future__ import annotations

import dataclasses
import json

import pytest

from harness.journal import Journal, read_records
from harness.observations import from_worker, not_run, unavailable
from harness.plan import Probe
from harness.results import NotRunReason, Observation, Verdict
from harness.worker import PROTOCOL
from tests.unit.worlds import make_case, make_cell

PROBE = Probe(cell=make_cell(), case=make_case("a/b"), path="aot", deadline_s=1.0, isolation="fork")
NOW = "2026-12-01T12:00:00.000Z"
SEEN = {
    "verdict": "error",
    "message": "backend='x' raised: KeyError: 1",
    "seconds": 1.5,
    "peak_bytes": 2**30,
    "isolation": "process",
    "graphs": 3,
    "ops": 9,
    "recompiles": 1,
    "breaks": [{"reason": "print", "code": "GB0059", "file": "a/b.py", "line": 4}],
    "raised": [
        {"type": "KeyError", "message": "1", "bases": ["LookupError"], "frame": "x.py:1 in f"},
    ],
    "traceback": "Traceback …",
    "output": "hello",
    "signal": "",
    "exit_status": 0,
    "difference": "",
}


def about(found: Observation) -> tuple[str, str, str, str, str, int, str]:
    probe = (found.cell, found.case, found.path)
    return (*probe, found.case_digest, found.environment, found.protocol, found.at)


ABOUT = ("3.12-2.4", "a/b", "aot", "digest-of-a/b", "env", PROTOCOL, NOW)


def test_every_field_that_the_worker_fills_arrives() -> None:
    found = from_worker(PROBE, json.loads(json.dumps(SEEN)), NOW, environment="env")
    assert about(found) == ABOUT
    as_json = json.loads(json.dumps(dataclasses.asdict(found)))
    assert {key: as_json[key] for key in SEEN} == SEEN
    assert found.raised[0].bases == ("LookupError",)
    filled = {field.name for field in dataclasses.fields(found)} - set(SEEN)
    assert filled == {
        "record", "cell", "case", "path", "not_run", "environment", "case_digest", "protocol", "at",
    }  # fmt: skip


def test_a_worker_that_says_little_is_understood() -> None:
    found = from_worker(PROBE, {"verdict": "full"}, NOW, environment="env")
    assert (found.verdict, found.breaks, found.raised) == (Verdict.FULL, (), ())
    assert found.exit_status is None
    assert found.not_run is None


def test_a_worker_may_say_that_nobody_could_look() -> None:
    seen = {"verdict": "not-run", "not_run": "disk full", "message": "the disk is full"}
    found = from_worker(PROBE, seen, NOW, environment="env")
    assert (found.verdict, found.not_run) == (Verdict.NOT_RUN, NotRunReason.DISK_FULL)


def test_what_did_not_run_says_so_of_the_same_probe() -> None:
    found = not_run(PROBE, NotRunReason.NO_DEVICE, "no CUDA device", NOW, environment="env")
    assert about(found) == ABOUT
    assert (found.verdict, found.not_run) == (Verdict.NOT_RUN, NotRunReason.NO_DEVICE)
    assert (found.message, found.seconds) == ("no CUDA device", 0.0)


def test_what_is_unavailable_says_so_of_the_same_probe() -> None:
    found = unavailable(PROBE, "needs Python >=3.14", NOW, environment="env")
    assert about(found) == ABOUT
    assert (found.verdict, found.not_run) == (Verdict.UNAVAILABLE, None)
    assert found.message == "needs Python >=3.14"


@pytest.mark.parametrize("seen", [SEEN, {"verdict": "full"}])
def test_an_observation_is_read_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, seen: dict[str, object]
) -> None:
    found = from_worker(PROBE, seen, NOW, environment="env")
    file = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with Journal.open(file) as journal:
        journal.append(found)
    assert read_records(file).records == (found,)
