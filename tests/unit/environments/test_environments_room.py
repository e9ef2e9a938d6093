"""The store stays within its budget: what nobody uses goes first, what is in use never."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from harness.environments import EnvironmentFailed, disk
from harness.environments.disk import GIGABYTE, Disk, default_budget
from harness.environments.leases import guard
from harness.environments.lock import Lock, LockedPackage, Request
from harness.results import NotRunReason
from tests.unit.environments.fakes import cell, interpreter, matrix

if TYPE_CHECKING:
    from pathlib import Path

    from harness.environments import Environment
    from tests.unit.environments.fakes import World

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the fake uv makes environments of POSIX"
)

MEGABYTE = 1_000_000


def disk_with(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    """A disk on which this much stays free, whatever is written or removed."""
    monkeypatch.setattr(Disk, "at", lambda _path: Disk(free_bytes=free_bytes))


@pytest.fixture(autouse=True)
def small_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake package takes about 0.1 MB, and so does what is expected of building it."""
    monkeypatch.setattr(disk, "_BYTECODE_BYTES", 0)
    disk_with(monkeypatch, 100 * GIGABYTE)


def build(world: World, *torches: str, **options: Any) -> list[Environment]:
    """Environments of 1 MB each, released, built one second after the other."""
    world.uv.lines = 100_000
    world.uv.size = MEGABYTE // 2
    built = []
    for number, torch in enumerate(torches):
        world.uv.packages = {"torch": torch}
        with_room = {"budget_bytes": 100 * MEGABYTE, **options}
        store = world.store(**with_room)
        environment = store.prepare(cell(torch), matrix(), interpreter())
        store.close()
        assert environment.root is not None
        facts = environment.root / "compile-matrix/environment.json"
        os.utime(facts, (1_000_000 + number, 1_000_000 + number))
        built.append(environment)
    return built


def prepare(world: World, torch: str, **options: Any) -> Environment:
    world.uv.packages = {"torch": torch}
    return world.store(**options).prepare(cell(torch), matrix(), interpreter())


class TestEviction:
    def test_the_one_unused_for_longest_goes(self, world: World) -> None:
        _, second = build(world, "2.4.1", "2.5.1")
        third = prepare(world, "2.6.0", budget_bytes=2_500_000)
        assert world.standing == sorted([second.id, third.id])
        assert "making room: the environment of 3.12-2.4.1 is removed" in world.told

    def test_with_its_files_in_the_cache_and_no_others(self, world: World) -> None:
        build(world, "2.4.1", "2.5.1")
        prepare(world, "2.6.0", budget_bytes=2_500_000)
        assert world.cached == ["torch-2.5.1", "torch-2.6.0"]

    def test_use_counts_not_age(self, world: World) -> None:
        first, _ = build(world, "2.4.1", "2.5.1")
        store = world.store()
        store.release(store.prepare(cell("2.4.1"), matrix(), interpreter()))
        third = prepare(world, "2.6.0", budget_bytes=2_500_000)
        assert world.standing == sorted([first.id, third.id])

    def test_what_is_in_use_stays_whatever_the_budget(self, world: World) -> None:
        first, second = build(world, "2.4.1", "2.5.1")
        user = world.store()
        user.prepare(cell("2.4.1"), matrix(), interpreter())
        third = prepare(world, "2.6.0", budget_bytes=1)
        assert world.standing == sorted([first.id, third.id])
        assert second.root is not None
        assert not second.root.exists()

    def test_what_is_being_built_stays(self, world: World) -> None:
        first, _ = build(world, "2.4.1", "2.5.1")
        holding, done = threading.Event(), threading.Event()

        def hold() -> None:
            with guard(world.root / f"guards/environment-{first.id}.lock"):
                holding.set()
                done.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        holding.wait(10)
        third = prepare(world, "2.6.0", budget_bytes=1)
        done.set()
        thread.join()
        assert world.standing == sorted([first.id, third.id])

    def test_nothing_is_evicted_when_there_is_room_or_when_told_to_keep(self, world: World) -> None:
        build(world, "2.4.1", "2.5.1")
        prepare(world, "2.6.0", budget_bytes=1, keep=True)
        assert len(world.standing) == 3
        assert not [line for line in world.told if "making room" in line]

    def test_unlinked_wheels_go_before_environments(self, world: World) -> None:
        build(world, "2.4.1", "2.5.1")
        orphan = world.root / "uv/archive-v0/numpy-1.0"
        (orphan / "numpy").mkdir(parents=True)
        (orphan / "numpy/data").write_bytes(b"x" * 2 * MEGABYTE)
        prepare(world, "2.6.0", budget_bytes=3_500_000)
        assert len(world.standing) == 3
        assert not orphan.exists()

    def test_a_cache_of_the_users_is_left_alone(self, world: World, tmp_path: Path) -> None:
        theirs = {"UV_CACHE_DIR": str(tmp_path / "theirs")}
        build(world, "2.4.1", "2.5.1", env=theirs)
        third = prepare(world, "2.6.0", budget_bytes=1, env=theirs)
        assert world.standing == [third.id]
        wheels = sorted(path.name for path in (tmp_path / "theirs/archive-v0").iterdir())
        assert wheels == ["torch-2.4.1", "torch-2.5.1", "torch-2.6.0"]

    def test_a_cache_that_uv_is_using_is_left_alone(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(disk, "_CACHE_WAIT_S", 0)
        build(world, "2.4.1", "2.5.1")
        holding, done = threading.Event(), threading.Event()

        def use() -> None:
            with guard(world.root / "uv/.lock"):
                holding.set()
                done.wait(10)

        thread = threading.Thread(target=use)
        thread.start()
        holding.wait(10)
        prepare(world, "2.6.0", budget_bytes=1)
        done.set()
        thread.join()
        assert world.cached == ["torch-2.4.1", "torch-2.5.1", "torch-2.6.0"]


class TestFullDisk:
    def test_a_build_that_does_not_fit_is_not_begun(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        disk_with(monkeypatch, 2 * GIGABYTE)
        world.uv.size = GIGABYTE
        with pytest.raises(EnvironmentFailed) as caught:
            prepare(world, "2.4.1")
        assert caught.value.reason is NotRunReason.DISK_FULL
        told = f"2.0 GB are free at {world.root}, and about 2.0 GB are needed"
        assert caught.value.detail == told
        assert world.uv.commands == ["compile"]

    def test_one_that_fills_the_disk_all_the_same_is_tried_again_with_more_room(
        self, world: World
    ) -> None:
        build(world, "2.4.1")
        world.uv.failures["venv"] = ["error: x\n  cause: No space left on device (os error 28)\n"]
        second = prepare(world, "2.5.1")
        assert world.standing == [second.id]

    def test_and_fails_with_the_reason_when_nothing_can_be_freed(self, world: World) -> None:
        world.uv.failures["venv"] = ["error: x\n  cause: No space left on device (os error 28)\n"]
        with pytest.raises(EnvironmentFailed) as caught:
            prepare(world, "2.4.1")
        assert caught.value.reason is NotRunReason.DISK_FULL

    def test_so_does_the_stores_own_writing(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_arguments: object, **_options: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("harness.environments.manifest.write", full)
        with pytest.raises(EnvironmentFailed) as caught:
            prepare(world, "2.4.1")
        assert caught.value.reason is NotRunReason.DISK_FULL
        assert world.standing == []


@pytest.mark.parametrize(
    ("free", "held", "budget"),
    [
        (56, 0, 40),  # a workstation's rest: all of it up to 40 GB
        (16, 40, 40),  # the same when the store stands
        (600, 0, 300),  # much room: half of it
        (14, 0, 9),  # little: 5 GB stay free
        (4, 0, 0),  # nothing to spare
        (4, 10, 9),  # and what stands must shrink
    ],
)
def test_the_default_budget_suits_the_disk(free: int, held: int, budget: int) -> None:
    sizes = Disk(free_bytes=free * GIGABYTE)
    assert default_budget(sizes, held * GIGABYTE) == budget * GIGABYTE


class TestMeasuring:
    def test_a_shared_file_counts_once(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        (tmp_path / "a/file").write_bytes(b"x" * MEGABYTE)
        os.link(tmp_path / "a/file", tmp_path / "b/file")
        once = disk.measure(tmp_path / "a")
        assert MEGABYTE <= once < 1.1 * MEGABYTE
        assert disk.measure(tmp_path) == once
        assert disk.measure(tmp_path / "a", tmp_path / "b") == once
        assert disk.measure_unlinked(tmp_path) == 0

    def test_removal_frees_what_nothing_else_holds(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/shared").write_bytes(b"x" * MEGABYTE)
        (tmp_path / "a/own").write_bytes(b"x" * MEGABYTE)
        os.link(tmp_path / "a/shared", tmp_path / "kept")
        assert MEGABYTE <= disk.discard(tmp_path / "a") < 1.1 * MEGABYTE
        assert [path.name for path in tmp_path.iterdir()] == ["kept"]
        assert disk.discard(tmp_path / "a") == 0

    def test_the_store_tells_its_size(self, world: World) -> None:
        build(world, "2.4.1", "2.5.1")
        size = world.store(budget_bytes=7).size()
        assert 1.5 * MEGABYTE < size.held_bytes < 3 * MEGABYTE
        assert size.cache_bytes < 100_000
        assert size.budget_bytes == 7
        assert size.is_cache_ours
        assert size.is_linked

    def test_what_is_in_the_cache_is_not_needed_again(self, tmp_path: Path) -> None:
        def lock(*files: tuple[str, int | None]) -> Lock:
            packages = tuple(
                LockedPackage(name=file.split("-")[0], version="", file=file, size_bytes=size)
                for file, size in files
            )
            request = Request(
                torch="2.4.1", era="release", as_of="", day="", requirements=(),
                python_version="3.12.1", platform="linux-x86_64", index="default",
            )  # fmt: skip
            return Lock(request=request, text=b"", packages=packages)

        torch = "torch-2.4.1-cp312-cp312-manylinux1_x86_64.whl"
        numpy = "numpy-1.26.4-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
        both = lock((torch, 100), (numpy, 10))
        assert disk.needed_for(both, tmp_path) == 220
        facts = tmp_path / "archive-v0/x/torch-2.4.1.dist-info/WHEEL"
        facts.parent.mkdir(parents=True)
        facts.write_text("Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\n")
        assert disk.needed_for(both, tmp_path) == 20
        other = lock((torch.replace("312", "313"), 100))
        assert disk.needed_for(other, tmp_path) == 200, "built for another Python"
        unknown = lock(("torch-2.5.1+cpu-cp312-cp312-linux_x86_64.whl", None))
        assert disk.needed_for(unknown, tmp_path) == 2 * GIGABYTE
