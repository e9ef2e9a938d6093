"""Reports are written whole or not at all, and always the same."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from harness.errors import ExitStatus, HarnessError
from harness.reports import REPORTS, write_reports
from tests.unit.reports import examples

if TYPE_CHECKING:
    from pathlib import Path

    from harness.results import Findings


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def fail_with(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_every_report_is_written_and_named(realistic: Findings, tmp_path: Path) -> None:
    directory = tmp_path / "made" / "for it"
    paths = write_reports(realistic, directory)
    assert [path.name for path in paths] == list(REPORTS)
    assert set(contents(directory)) == set(REPORTS)
    assert all(path.stat().st_size for path in paths)


def test_equal_findings_give_equal_bytes(tmp_path: Path) -> None:
    for make in (examples.make_realistic, examples.make_hostile, examples.make_nothing):
        write_reports(make(), tmp_path / "one")
        write_reports(make(), tmp_path / "two")
        assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_full_disk_leaves_the_old_reports_and_no_half_ones(
    realistic: Findings, unprobed: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_reports(unprobed, tmp_path)
    before = contents(tmp_path)
    calls = 0

    def full_at_the_third(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise fail_with(errno.ENOSPC)

    monkeypatch.setattr(os, "fsync", full_at_the_third)
    with pytest.raises(HarnessError) as caught:
        write_reports(realistic, tmp_path)
    assert contents(tmp_path) == before
    assert caught.value.status is ExitStatus.OUR_FAULT
    assert "the disk is full" in caught.value.message
    assert "nothing that was measured is lost" in caught.value.hint
    assert "compile-matrix report" in caught.value.hint


def test_another_failing_disk_is_our_fault_too(
    realistic: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(descriptor: int) -> None:
        raise fail_with(errno.EIO)

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(HarnessError, match="could not be written") as caught:
        write_reports(realistic, tmp_path)
    assert caught.value.status is ExitStatus.OUR_FAULT
    assert contents(tmp_path) == {}


def test_a_place_that_is_no_folder_is_the_users_to_mend(
    realistic: Findings, tmp_path: Path
) -> None:
    file = tmp_path / "taken"
    file.write_text("", encoding="utf-8")
    with pytest.raises(HarnessError, match="cannot be written there") as caught:
        write_reports(realistic, file)
    assert caught.value.status is ExitStatus.USAGE
    assert caught.value.where == str(file)
