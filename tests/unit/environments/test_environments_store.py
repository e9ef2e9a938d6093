"""Environments are built once, whole or not at all, shared between runs, and never used when damaged."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.environments import DEFAULT_INDEX, PYTORCH_CPU_INDEX, EnvironmentFailed
from harness.environments.leases import guard
from harness.matrix import Device, Era
from harness.process import PIPE, allowed_environment, start
from harness.results import NotRunReason
from tests.unit.environments.fakes import CPU_INDEX, NOON, cell, interpreter, matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.environments.fakes import World

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the fake uv makes environments of POSIX"
)

BUILT = ["compile", "venv", "sync", "compileall"]
UNREACHABLE = (
    "error: Request failed after 3 retries in 4.0s\n"
    "  cause: Failed to fetch: https://index/simple/torch/\n  cause: dns error\n"
)
NO_WHEEL = (
    "error: No solution found when resolving dependencies\n"
    "  cause: Because torch==2.4.1 has no wheels with a matching Python ABI tag (e.g., `cp312`) and\n\n"
    "hint: You require CPython 3.12 (`cp312`), but we only found wheels for `torch` (v2.4.1)\n"
)
DISK_FULL = "error: Failed to install\n  cause: No space left on device (os error 28)\n"


class TestBuilding:
    def test_what_is_known_of_an_environment(self, world: World) -> None:
        environment = world.store().prepare(cell(), matrix(), interpreter())
        assert environment.packages == {"numpy": "1.26.4", "torch": "2.4.1"}
        assert environment.torch_version == "2.4.1"
        assert environment.python_version == "3.12.1"
        assert environment.index == DEFAULT_INDEX
        assert environment.built_for == "3.12-2.4.1"
        assert re.fullmatch("[0-9a-f]{16}", environment.id)
        assert environment.root == world.root / "environments" / environment.id
        assert environment.python == environment.root / "bin/python"
        assert environment.python.exists()
        assert environment.size_bytes > 2 * 4096
        assert environment.lock_file is not None
        assert b"sha256" in environment.lock_file.read_bytes()

    def test_uv_is_asked_in_full(self, world: World) -> None:
        surroundings = {
            "UV_TORCH_BACKEND": "cu126",
            "UV_EXCLUDE_NEWER": "2020-01-01",
            "PIP_INDEX_URL": "http://elsewhere",
            "PYTHONPATH": "/surprise",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        world.store(env=surroundings).prepare(cell(), matrix(), interpreter())
        resolve, create, install, compile_all = world.uv.calls
        for call in (resolve, create, install):
            assert "--no-config" in call.argv
            assert "--offline" not in call.argv
            assert call.option("--cache-dir") == str(world.root / "uv")
            assert not set(surroundings) & set(call.env)
        assert not set(surroundings) & set(compile_all.env)
        assert resolve.option("--exclude-newer") == "2024-10-01T00:00:00Z"
        assert resolve.option("--only-binary") == ":all:"
        assert resolve.option("--python") == sys.executable
        assert resolve.option("--output-file").endswith("/pylock.toml")
        assert create.option("--python") == sys.executable
        assert install.option("--python").endswith("/bin/python")

    def test_it_says_what_it_does(self, world: World) -> None:
        world.store().prepare(cell(), matrix(), interpreter())
        assert world.told == [
            "3.12-2.4.1: resolving packages",
            "3.12-2.4.1: installing 2 packages",
        ]

    def test_nothing_is_left_beside_it(self, world: World) -> None:
        environment = world.store().prepare(cell(), matrix(), interpreter())
        assert world.standing == [environment.id]
        assert len(list((world.root / "locks").iterdir())) == 1

    @pytest.mark.parametrize("command", ["compile", "venv", "sync"])
    def test_a_failure_leaves_nothing_behind_and_shows_uvs_words(
        self, world: World, command: str
    ) -> None:
        world.uv.failures = {command: ["error: It broke\n  cause: Some reason\n"]}
        with pytest.raises(EnvironmentFailed) as caught:
            world.store().prepare(cell(), matrix(), interpreter())
        assert caught.value.reason is NotRunReason.ENVIRONMENT_FAILED
        assert caught.value.detail == "It broke: Some reason"
        assert caught.value.evidence == "error: It broke\n  cause: Some reason"
        assert world.standing == []
        world.store().prepare(cell(), matrix(), interpreter())
        assert len(world.standing) == 1

    def test_an_installation_without_torch_is_none(self, world: World) -> None:
        world.uv.packages = {"numpy": "1.26.4"}
        with pytest.raises(EnvironmentFailed, match="torch is not among"):
            world.store().prepare(cell(), matrix(), interpreter())
        assert world.standing == []

    def test_what_the_cache_has_is_not_asked_of_the_index_again(self, world: World) -> None:
        store = world.store()
        store.prepare(cell(), matrix(), interpreter())
        world.uv.calls.clear()
        world.uv.packages = {"numpy": "1.26.4", "torch": "2.5.1"}
        store.prepare(cell("2.5.1"), matrix(), interpreter())
        assert world.uv.commands == ["compile", "venv", "sync", "sync", "compileall"]
        assert ["--offline" in call.argv for call in world.uv.calls[2:4]] == [True, False]

    def test_a_cancelled_store_ends_at_once(self, world: World) -> None:
        world.uv.pauses["sync"] = 30
        cancel = threading.Event()
        threading.Timer(0.5, cancel.set).start()
        with pytest.raises(EnvironmentFailed) as caught:
            world.store(cancel=cancel).prepare(cell(), matrix(), interpreter())
        assert caught.value.reason is NotRunReason.INTERRUPTED
        assert world.standing == []


class TestReuse:
    def test_nothing_is_asked_of_uv_when_nothing_changed(self, world: World) -> None:
        first = world.store().prepare(cell(), matrix(), interpreter())
        world.uv.calls.clear()
        again = world.store().prepare(cell(), matrix(), interpreter())
        assert again == first
        assert world.uv.commands == []

    def test_it_can_be_found_without_being_made(self, world: World) -> None:
        store = world.store()
        assert store.find(cell(), matrix(), interpreter()) is None
        made = store.prepare(cell(), matrix(), interpreter())
        world.uv.calls.clear()
        assert world.store().find(cell(), matrix(), interpreter()) == made
        assert world.uv.commands == []

    def test_cells_that_resolve_to_the_same_share_it(self, world: World) -> None:
        store = world.store()
        cpu = store.prepare(cell(), matrix(), interpreter())
        cuda = store.prepare(cell(device=Device.CUDA), matrix(), interpreter())
        assert cpu.id == cuda.id
        assert world.uv.commands == BUILT

    @pytest.mark.parametrize(
        "changed",
        [
            {"matrix": matrix(requirements=("numpy", "setuptools"))},
            {"interpreter": interpreter("3.12.2")},
            {"cell": cell("2.5.1")},
            {"matrix": matrix(default="https://mirror/simple")},
        ],
        ids=["requirements", "interpreter", "torch", "index"],
    )
    def test_another_request_is_resolved_anew(
        self, world: World, changed: dict[str, object]
    ) -> None:
        world.store().prepare(cell(), matrix(), interpreter())
        world.uv.calls.clear()
        question = {"cell": cell(), "matrix": matrix(), "interpreter": interpreter(), **changed}
        world.store().prepare(*question.values())  # type: ignore[arg-type]
        assert "compile" in world.uv.commands

    def test_an_environment_that_is_gone_is_built_from_its_lock(self, world: World) -> None:
        first = world.store().prepare(cell(), matrix(), interpreter())
        assert first.root is not None
        first.root.rename(world.root / "elsewhere")
        world.uv.calls.clear()
        again = world.store().prepare(cell(), matrix(), interpreter())
        assert again.id == first.id
        assert "compile" not in world.uv.commands

    def test_one_whose_python_is_gone_is_built_anew(self, world: World) -> None:
        first = world.store().prepare(cell(), matrix(), interpreter())
        first.python.unlink()
        world.uv.calls.clear()
        again = world.store().prepare(cell(), matrix(), interpreter())
        assert again.python.exists()
        assert "venv" in world.uv.commands

    def test_one_of_another_recipe_is_built_anew(self, world: World) -> None:
        first = world.store().prepare(cell(), matrix(), interpreter())
        assert first.root is not None
        facts = first.root / "compile-matrix/environment.json"
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "recipe": 0}))
        world.uv.calls.clear()
        world.store().prepare(cell(), matrix(), interpreter())
        assert "venv" in world.uv.commands

    def test_a_damaged_lock_is_made_again(self, world: World) -> None:
        world.store().prepare(cell(), matrix(), interpreter())
        (lock,) = (world.root / "locks").glob("*/pylock.toml")
        lock.write_text("[[packages")
        world.store().prepare(cell(), matrix(), interpreter())
        assert "packages" in lock.read_text()


class TestEras:
    def test_today_is_resolved_once_a_day_and_shared_while_nothing_new_came(
        self, world: World
    ) -> None:
        today = cell(era=Era.TODAY)
        first = world.store().prepare(today, matrix(), interpreter())
        assert "--exclude-newer" not in world.uv.calls[0].argv
        world.uv.calls.clear()
        later = world.store(now=NOON + timedelta(hours=11))
        assert later.prepare(today, matrix(), interpreter()) == first
        assert world.uv.commands == []
        tomorrow = world.store(now=NOON + timedelta(hours=13))
        assert tomorrow.prepare(today, matrix(), interpreter()) == first
        assert world.uv.commands == ["compile"]


class TestNetwork:
    def test_a_failure_of_the_network_is_tried_again(self, world: World) -> None:
        world.uv.failures = {"compile": [UNREACHABLE, UNREACHABLE], "sync": [UNREACHABLE]}
        environment = world.store().prepare(cell(), matrix(), interpreter())
        assert environment.torch_version == "2.4.1"
        assert world.uv.commands.count("compile") == 3

    def test_but_not_for_ever_and_once_it_is_known_only_once(self, world: World) -> None:
        world.uv.failures = {"compile": [UNREACHABLE] * 9}
        store = world.store()
        for expected in (3, 4):
            with pytest.raises(EnvironmentFailed) as caught:
                store.prepare(cell(), matrix(), interpreter())
            assert caught.value.reason is NotRunReason.INDEX_UNREACHABLE
            assert world.uv.commands.count("compile") == expected

    def test_a_missing_wheel_is_told_at_once(self, world: World) -> None:
        world.uv.failures = {"compile": [NO_WHEEL] * 9}
        with pytest.raises(EnvironmentFailed) as caught:
            world.store().prepare(cell(), matrix(), interpreter())
        assert caught.value.reason is NotRunReason.NO_WHEEL
        assert caught.value.detail.startswith("You require CPython 3.12")
        assert world.uv.commands == ["compile"]

    def test_offline_works_from_the_cache(self, world: World) -> None:
        world.store().prepare(cell(), matrix(), interpreter())
        world.uv.packages = {"torch": "2.4.1"}
        world.uv.calls.clear()
        store = world.store(offline=True)
        store.prepare(cell("2.5.1"), matrix(cpu=CPU_INDEX), interpreter())
        assert world.uv.commands
        *asked, _compileall = world.uv.calls
        assert all("--offline" in call.argv for call in asked)

    def test_offline_says_so_when_something_is_missing(self, world: World) -> None:
        with pytest.raises(EnvironmentFailed) as caught:
            world.store(offline=True).prepare(cell(), matrix(), interpreter())
        assert caught.value.reason is NotRunReason.INDEX_UNREACHABLE
        assert caught.value.detail.startswith("offline, and something is not in the cache")

    def test_a_mirror_of_the_users_wins_over_the_matrix(self, world: World) -> None:
        theirs = matrix(default="https://index.example/simple")
        world.store().prepare(cell(), theirs, interpreter())
        assert world.uv.calls[0].option("--default-index") == "https://index.example/simple"
        world.uv.calls.clear()
        mirrored = world.store(env={"UV_DEFAULT_INDEX": "https://mirror/simple"})
        mirrored.prepare(cell("2.5.1"), theirs, interpreter())
        assert "--default-index" not in world.uv.calls[0].argv
        assert "UV_DEFAULT_INDEX" in world.uv.calls[0].env


@pytest.fixture
def index() -> Iterator[tuple[str, list[str]]]:
    """An index that lists torch, and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b'<a href="torch-2.4.1%2Bcpu-cp312-cp312-linux_x86_64.whl">torch-2.4.1</a>'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/whl/cpu", asked
    server.shutdown()
    server.server_close()
    thread.join()


class TestCpuIndex:
    def test_it_is_used_when_it_answers_and_torch_alone_comes_from_it(
        self, world: World, index: tuple[str, list[str]]
    ) -> None:
        url, asked = index
        environment = world.store().prepare(cell(), matrix(cpu=url), interpreter())
        assert environment.index == PYTORCH_CPU_INDEX
        assert environment.torch_version == "2.4.1+cpu"
        assert asked == ["/whl/cpu/torch/"]
        (request,) = (world.root / "locks").glob("*/pyproject.toml")
        text = request.read_text()
        assert 'dependencies = ["torch==2.4.1+cpu", "numpy"]' in text
        assert f'url = "{url}"\nexplicit = true' in text
        assert world.uv.calls[0].option("--exclude-newer-package") == "torch=false"

    def test_it_is_asked_once_a_run(self, world: World, index: tuple[str, list[str]]) -> None:
        url, asked = index
        store = world.store()
        for torch in ("2.4.1", "2.5.1", "2.6.0"):
            store.prepare(cell(torch), matrix(cpu=url), interpreter())
        assert len(asked) == 1

    def test_it_is_not_asked_when_an_environment_stands(
        self, world: World, index: tuple[str, list[str]]
    ) -> None:
        url, asked = index
        built = world.store().prepare(cell(), matrix(cpu=url), interpreter())
        again = world.store().prepare(cell(), matrix(cpu=url), interpreter())
        assert again == built
        assert len(asked) == 1

    def test_the_default_index_takes_its_place(self, world: World) -> None:
        environment = world.store().prepare(cell(), matrix(cpu=CPU_INDEX), interpreter())
        assert environment.index == DEFAULT_INDEX
        assert world.uv.commands == BUILT

    def test_what_was_built_without_it_is_kept_to_when_it_answers_again(
        self, world: World, index: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url, asked = index
        with monkeypatch.context() as patch:
            patch.setattr("harness.environments.index._lists_torch", lambda *_arguments: False)
            first = world.store().prepare(cell(), matrix(cpu=url), interpreter())
        assert first.index == DEFAULT_INDEX
        assert first.root is not None
        first.root.rename(world.root / "evicted")
        again = world.store().prepare(cell(), matrix(cpu=url), interpreter())
        assert again.id == first.id
        assert asked == []

    @pytest.mark.parametrize("failure", [NO_WHEEL, UNREACHABLE], ids=["no wheel", "network"])
    def test_so_it_does_when_uv_finds_nothing_there(
        self, world: World, index: tuple[str, list[str]], failure: str
    ) -> None:
        times = 3 if failure == UNREACHABLE else 1
        world.uv.failures = {"compile": [failure] * times}
        environment = world.store().prepare(cell(), matrix(cpu=index[0]), interpreter())
        assert environment.index == DEFAULT_INDEX
        assert any("trying the next" in line for line in world.told)

    @pytest.mark.parametrize(
        "other",
        [cell(device=Device.CUDA), cell(platform="macos-arm64"), cell(platform="windows-amd64")],
        ids=["cuda", "macos", "windows"],
    )
    def test_others_use_the_default_index(
        self, world: World, index: tuple[str, list[str]], other: object
    ) -> None:
        url, asked = index
        environment = world.store().prepare(other, matrix(cpu=url), interpreter())  # type: ignore[arg-type]
        assert environment.index == DEFAULT_INDEX
        assert asked == []


class TestDamage:
    def test_untouched_files_are_found_untouched(self, world: World) -> None:
        store = world.store()
        assert store.verify(store.prepare(cell(), matrix(), interpreter())) == ()

    def test_bytecode_is_not_looked_at(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        assert environment.root is not None
        (cache,) = environment.root.glob("lib/*/site-packages/torch/__pycache__")
        (cache / "y.pyc").write_text("written by a later import")
        (cache / "x.pyc").unlink()
        assert store.verify(environment) == ()

    def test_what_changed_came_and_went_is_named(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        assert environment.root is not None
        site = environment.root / "lib/python3.12/site-packages"
        with (site / "torch/__init__.py").open("a") as text:
            text.write("patched = True\n")
        (site / "numpy/__init__.py").unlink()
        (site / "sitecustomize.py").touch()
        base = "lib/python3.12/site-packages"
        assert store.verify(environment) == (
            f"{base}/numpy/__init__.py",
            f"{base}/sitecustomize.py",
            f"{base}/torch/__init__.py",
        )

    def test_a_change_of_the_same_size_is_seen(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        assert environment.root is not None
        path = environment.root / "lib/python3.12/site-packages/torch/__init__.py"
        path.write_text(path.read_text().swapcase())
        assert len(store.verify(environment)) == 1

    def test_it_is_built_anew_without_the_damaged_files(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        store.release(environment)
        assert environment.root is not None
        path = environment.root / "lib/python3.12/site-packages/torch/__init__.py"
        with path.open("a") as text:
            text.write("patched = True\n")
        assert "patched" in (world.root / "uv/archive-v0/torch-2.4.1/torch/__init__.py").read_text()
        world.uv.calls.clear()
        again = store.prepare(cell(), matrix(), interpreter())
        assert again.id == environment.id
        assert "patched" not in path.read_text()
        assert store.verify(again) == ()
        (clean,) = [call for call in world.uv.calls if call.command == "clean"]
        assert clean.argv[:3] == ("cache", "clean", "torch")
        assert any("building anew, files of torch were changed" in line for line in world.told)

    def test_the_cache_is_left_alone_when_it_holds_no_damage(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        store.release(environment)
        assert environment.root is not None
        (environment.root / "lib/python3.12/site-packages/torch/new.py").touch()
        store.prepare(cell(), matrix(), interpreter())
        assert "clean" not in world.uv.commands
        assert any("building anew" in line for line in world.told)

    def test_one_in_use_is_not_torn_away(self, world: World) -> None:
        store = world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        assert environment.root is not None
        path = environment.root / "lib/python3.12/site-packages/torch/__init__.py"
        path.write_text("patched = True\n")
        with pytest.raises(EnvironmentFailed, match="changed while it is in use"):
            world.store().prepare(cell(), matrix(), interpreter())
        assert path.exists()


class TestTogether:
    def test_two_threads_build_one_environment(self, world: World) -> None:
        world.uv.pauses["sync"] = 0.1
        store = world.store()
        found: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(store.prepare(cell(), matrix(), interpreter()).id)
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 3
        assert len(set(found)) == 1
        assert world.uv.commands == BUILT

    def test_what_a_dead_builder_left_is_swept_and_a_living_ones_is_not(self, world: World) -> None:
        dead, living = "0" * 16, "1" * 16
        folder = world.root / "environments"
        for identity in (dead, living):
            (folder / f".tmp-{identity}-4711/lib").mkdir(parents=True)
        (folder / ".trash-abc/lib").mkdir(parents=True)
        (world.root / f"locks/.tmp-{dead}-4711").mkdir(parents=True)
        holding = threading.Event()
        done = threading.Event()

        def build() -> None:
            with guard(world.root / f"guards/environment-{living}.lock"):
                holding.set()
                done.wait(10)

        thread = threading.Thread(target=build)
        thread.start()
        holding.wait(10)
        made = world.store().prepare(cell(), matrix(), interpreter())
        done.set()
        thread.join()
        assert world.standing == sorted([f".tmp-{living}-4711", made.id])
        assert not list((world.root / "locks").glob(".tmp-*"))

    def test_it_is_in_use_until_it_is_given_back(self, world: World) -> None:
        store, other = world.store(), world.store()
        environment = store.prepare(cell(), matrix(), interpreter())
        store.prepare(cell(), matrix(), interpreter())
        (standing,) = other.standing()
        assert standing.environment == environment
        assert standing.is_in_use
        store.release(environment)
        assert other.standing()[0].is_in_use, "taken twice, given back once"
        store.release(environment)
        assert not other.standing()[0].is_in_use

    def test_closing_gives_all_back(self, world: World) -> None:
        store = world.store()
        store.prepare(cell(), matrix(), interpreter())
        store.close()
        assert not store.standing()[0].is_in_use
        assert list((world.root / "leases").iterdir()) == []

    @pytest.mark.process
    def test_a_dead_process_uses_nothing(self, world: World) -> None:
        store = world.store()
        store.release(store.prepare(cell(), matrix(), interpreter()))
        script = (
            "import sys, time; from pathlib import Path\n"
            "from harness.environments.leases import Leases\n"
            "leases = Leases(Path(sys.argv[1]))\n"
            "leases.take(sys.argv[2])\n"
            "print('taken', flush=True); time.sleep(60)"
        )
        argv = (sys.executable, "-c", script, str(world.root / "leases"), world.standing[0])
        root = Path(__file__).parents[3]
        child = start(argv, env=allowed_environment(os.environ), cwd=root, stdout=PIPE)
        assert child.stdout is not None
        with child.stdout as lines:
            assert lines.readline() == b"taken\n"
            other = world.store()
            assert other.standing()[0].is_in_use
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=10)
        assert not other.standing()[0].is_in_use
