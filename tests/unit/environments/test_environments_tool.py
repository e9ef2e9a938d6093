"""What uv says, in the harness's words. The texts are uv 0.13's own."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from harness.environments import EnvironmentFailed, tool
from harness.environments.tool import Uv, evidence_of, failure_of
from harness.process import Finished
from harness.results import NotRunReason

TOLD = sorted((Path(__file__).parents[2] / "fixtures/uv").glob("*.txt"))
"""Each begins with what is expected; then follow uv's own words."""


def finished(text: str = "", **facts: object) -> Finished:
    settings: dict[str, object] = {"status": 2, "stdout_tail": "", "stderr_tail": text, **facts}
    return Finished(**settings)  # type: ignore[arg-type]


def test_there_are_texts() -> None:
    assert len(TOLD) > 10


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.stem)
def test_each_failure_has_its_reason(path: Path) -> None:
    expected, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    failure = failure_of(finished(text), "resolving packages")
    again = "yes" if failure.is_transient else "no"
    told = f"reason: {failure.reason.value}\ndetail: {failure.detail}\nagain: {again}"
    assert told == expected
    assert failure.evidence == text.strip()


def test_a_deadline_is_told_with_its_length() -> None:
    failure = failure_of(
        finished("half a line", timed_out=True, seconds=60.2), "installing packages"
    )
    assert failure.reason is NotRunReason.ENVIRONMENT_FAILED
    assert failure.detail == "uv did not finish installing packages within 60 s"


def test_an_interrupt_is_no_failure_of_uvs() -> None:
    failure = failure_of(finished("error: x", cancelled=True), "installing packages")
    assert failure.reason is NotRunReason.INTERRUPTED


def test_silence_is_told_as_such() -> None:
    failure = failure_of(finished(status=-9), "installing packages")
    assert failure.detail == "uv ended with status -9 while installing packages and said nothing"


def test_credentials_never_reach_a_report() -> None:
    text = (
        "error: Request failed after 3 retries\n"
        "  cause: Failed to fetch: https://me:secret@index/simple/torch/\n"
    )
    failure = failure_of(finished(text), "resolving packages")
    assert "secret" not in failure.evidence + failure.detail + str(failure)
    assert "https://***@index/simple/torch/" in failure.evidence


def test_evidence_is_the_end_and_bounded() -> None:
    evidence = evidence_of("\n".join(f"line {number}" for number in range(1000)))
    assert evidence.splitlines()[-1] == "line 999"
    assert len(evidence.splitlines()) == 20
    assert len(evidence_of("x" * 100_000)) == 4000


@pytest.mark.process
def test_uv_that_cannot_be_started_fails_the_cell_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "find_uv", lambda _env: tmp_path / "absent")
    uv = Uv(env={}, cache=tmp_path, offline=False)
    with pytest.raises(EnvironmentFailed, match="uv could not be started"):
        uv.run("venv", deadline_s=5, cwd=tmp_path)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="the fake uv is a shell script")
def test_a_set_event_ends_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "uv"
    fake.write_text("#!/bin/sh\necho begun >&2\nexec /bin/sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setattr(tool, "find_uv", lambda _env: fake)
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    uv = Uv(env={}, cache=tmp_path, offline=False, cancel=cancel)
    ended = uv.run("venv", deadline_s=30, cwd=tmp_path)
    assert ended.cancelled
    assert ended.stderr_tail == "begun\n"
    assert ended.seconds < 10
