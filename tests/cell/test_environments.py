"""Real environments by the real uv, from an index on this machine whose wheels are tiny.

The wheel called `torch` here holds one line of Python: what is tried is how environments come about, not
what runs in them.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import marshal
import os
import re
import signal
import sys
import threading
import time
import zipfile
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest

from harness import process
from harness.environments import EnvironmentFailed, EnvironmentStore
from harness.environments.disk import free_from_cache
from harness.errors import HarnessError
from harness.interpreters import Interpreter, find_interpreters
from harness.matrix import Cell, Device, Era, Indexes, Limits, Matrix, Release
from harness.results import NotRunReason

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.cell

ROOT = Path(__file__).parents[2]
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
DAYS = {"1.0": "2024-01-01T00:00:00Z", "2.0": "2026-01-01T00:00:00Z"}


def wheel(name: str, version: str, tag: str = "py3-none-any", **files: str) -> tuple[str, bytes]:
    """File name and bytes of a wheel with one module, and further files in it."""
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n",
        **{f"{name}/{file}.py": text for file, text in files.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    if name == "torch":
        contents[f"{info}/METADATA"] += "Requires-Dist: dependency\n"
    lines = []
    for path, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text)}")
    contents[f"{info}/RECORD"] = "\n".join((*lines, f"{info}/RECORD,,\n"))
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
    return f"{name}-{version}-{tag}.whl", packed.getvalue()


@dataclass(slots=True)
class Index:
    """Two indexes: /simple gives upload dates, /cpu none. Neither says how long its answers hold.

    asked: every path asked for. stalled: paths whose file stops half-way until `go` is set.
    """

    url: str = ""
    wheels: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"simple": {}, "cpu": {}})
    asked: list[str] = field(default_factory=list)
    stalled: str = ""
    has_stalled: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def add(self, index: str, name: str, version: str, *tag: str, **files: str) -> None:
        file, content = wheel(name, version, *tag, **files)
        self.wheels[index][file] = content

    def page(self, index: str, name: str) -> tuple[str, bytes] | None:
        found = {
            file: content
            for file, content in self.wheels[index].items()
            if file.startswith(f"{name}-")
        }
        if not found:
            return None
        if index == "cpu":
            links = (
                f'<a href="/files/cpu/{quote(file)}#sha256={hashlib.sha256(content).hexdigest()}"'
                f' data-core-metadata="true">{file}</a>'
                for file, content in found.items()
            )
            return (
                "text/html",
                f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode(),
            )
        files = [
            {
                "filename": file,
                "url": f"{self.url}/files/simple/{quote(file)}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "size": len(content),
                "core-metadata": True,
                "upload-time": DAYS.get(file.split("-")[1], "2024-01-01T00:00:00Z"),
            }
            for file, content in found.items()
        ]
        page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [], "files": files}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page).encode()

    def downloads(self, name: str) -> int:
        """How often a whole wheel of this package was asked for."""
        path = re.compile(rf"GET /files/\w+/{name}-.*\.whl")
        return sum(path.fullmatch(line) is not None for line in self.asked)

    def file(self, path: str) -> bytes | None:
        where, _, name = path.partition("/")
        content = self.wheels[where].get(name.removesuffix(".metadata"))
        if content is None or name.endswith(".whl"):
            return content
        with zipfile.ZipFile(BytesIO(content)) as archive:
            (entry,) = (one for one in archive.namelist() if one.endswith("/METADATA"))
            return archive.read(entry)


@pytest.fixture
def index() -> Iterator[Index]:
    index = Index()
    for torch in ("2.4.1", "2.5.1"):
        index.add("simple", "torch", torch)
        index.add("cpu", "torch", f"{torch}+cpu")
    for version in DAYS:
        index.add("simple", "dependency", version)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def answer(self, *, with_body: bool) -> None:
            index.asked.append(f"{self.command} {unquote(self.path)}")
            first, _, rest = unquote(self.path).strip("/").partition("/")
            if first == "files":
                content = index.file(rest)
                found = None if content is None else ("application/zip", content)
            else:
                found = index.page(first, rest)
            if found is None:
                self.send_error(404)
                return
            kind, body = found
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not with_body:
                return
            if index.stalled and self.path.endswith(index.stalled):
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                index.has_stalled.set()
                index.go.wait(60)
                body = body[len(body) // 2 :]
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client was killed half-way: that is what is tried."""

    server = Server(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield index
    index.go.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    found = find_interpreters((MINOR,), env=os.environ)
    assert MINOR in found, "the Python that runs the tests is not found"
    return found[MINOR]


def cell(torch: str = "2.4.1", device: Device = Device.CUDA) -> Cell:
    return Cell(
        python=MINOR,
        torch=torch,
        device=device,
        era=Era.RELEASE,
        platform="linux-x86_64",
        id=f"{MINOR}-{torch}",
        order=0,
    )


def matrix(index_url: str, as_of: str = "2025-01-01T00:00:00Z") -> Matrix:
    releases = tuple(
        Release(
            version=version,
            series=version.rpartition(".")[0],
            is_default=True,
            day=as_of[:10],
            as_of=as_of,
            cuda="12.1",
            cuda_platforms=(),
            wheels={},
        )
        for version in ("2.4.1", "2.5.1", "2.6.0")
    )
    return Matrix(
        pythons=(),
        platforms=(),
        releases=releases,
        indexes=Indexes(default=f"{index_url}/simple", cpu=f"{index_url}/cpu"),
        limits=Limits(deadlines_s={"default": 60.0}, memory_bytes=10**9),
        requirements_by_era={},
        profiles={},
        file=Path("matrix.yaml"),
    )


def store(root: Path, told: list[str] | None = None, **options: Any) -> EnvironmentStore:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    settings: dict[str, Any] = {
        "env": kept,
        "now": datetime.now(timezone.utc),
        "budget_bytes": 10**12,  # however full this disk is
        "on_event": [].append if told is None else told.append,
        **options,
    }
    return EnvironmentStore(root, **settings)


def ask(python: Path, script: str) -> str:
    argv = (str(python), "-c", script)
    env = process.allowed_environment(os.environ)
    finished = process.run(argv, deadline_s=60, env=env, cwd=python.parent)
    assert finished.is_success, finished.stderr_tail
    return finished.stdout_tail.strip()


DRIVER = """
import sys
from pathlib import Path
from tests.cell.test_environments import MINOR, cell, find_interpreters, matrix, os, store
interpreter = find_interpreters((MINOR,), env=os.environ)[MINOR]
told = []
environment = store(Path(sys.argv[1]), told).prepare(cell(), matrix(sys.argv[2]), interpreter)
print(environment.id, any("waiting" in line for line in told), flush=True)
"""


def drive(root: Path, index: Index) -> process.Child:
    """Another process that prepares the same environment."""
    argv = (sys.executable, "-c", DRIVER, str(root), index.url)
    env = process.allowed_environment(os.environ)
    return process.start(argv, env=env, cwd=ROOT, stdout=process.PIPE)


class TestOneEnvironment:
    def test_it_runs_where_it_was_moved_to_and_its_bytecode_is_valid(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        environment = store(tmp_path).prepare(cell(), matrix(index.url), interpreter)
        assert environment.root is not None
        compiled = {path: path.stat() for path in environment.root.rglob("*.pyc")}
        assert len(compiled) == 2
        for path in compiled:
            code = marshal.loads(path.read_bytes()[16:])
            assert code.co_filename == str(path.parents[1] / "__init__.py")
        told = ask(
            environment.python,
            "import sys, torch, dependency\n"
            "print(torch.__version__, sys.prefix, torch.__file__, torch.__cached__)",
        ).split()
        site = environment.root / f"lib/python{MINOR}/site-packages"
        assert told[:3] == ["2.4.1", str(environment.root), str(site / "torch/__init__.py")]
        for path, before in compiled.items():
            after = path.stat()
            assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert environment.packages == {"dependency": "1.0", "torch": "2.4.1"}
        assert store(tmp_path).verify(environment) == ()

    def test_the_rest_is_of_its_era(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        late = matrix(index.url, as_of="2026-06-01T00:00:00Z")
        environment = store(tmp_path).prepare(cell(), late, interpreter)
        assert environment.packages["dependency"] == "2.0"
        today = replace(cell(), era=Era.TODAY)
        assert store(tmp_path).prepare(today, matrix(index.url), interpreter) == environment

    def test_pytorchs_index_gives_torch_alone_and_needs_no_dates(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        index.add("cpu", "dependency", "9.0")
        cpu = cell(device=Device.CPU)
        environment = store(tmp_path).prepare(cpu, matrix(index.url), interpreter)
        assert environment.index == "pytorch-cpu"
        assert environment.packages == {"dependency": "1.0", "torch": "2.4.1+cpu"}
        assert environment.lock_file is not None
        lock = environment.lock_file.read_text()
        (content,) = (index.wheels["cpu"][f"torch-{v}-py3-none-any.whl"] for v in ["2.4.1+cpu"])
        assert hashlib.sha256(content).hexdigest() in lock

    def test_a_release_that_pytorchs_index_lacks_comes_from_the_default_index(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        index.add("simple", "torch", "2.6.0")
        told: list[str] = []
        environment = store(tmp_path, told).prepare(
            cell("2.6.0", Device.CPU), matrix(index.url), interpreter
        )
        assert (environment.index, environment.torch_version) == ("default", "2.6.0")
        assert any("trying the next" in line for line in told)

    def test_nothing_is_asked_of_anybody_when_it_stands(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        cpu = cell(device=Device.CPU)
        first = store(tmp_path).prepare(cpu, matrix(index.url), interpreter)
        index.asked.clear()
        begun = time.monotonic()
        assert store(tmp_path).prepare(cpu, matrix(index.url), interpreter) == first
        assert time.monotonic() - begun < 1
        assert store(tmp_path, offline=True).prepare(cpu, matrix(index.url), interpreter) == first
        assert index.asked == []

    def test_offline_builds_from_the_cache(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        first = store(tmp_path).prepare(cell(), matrix(index.url), interpreter)
        assert first.root is not None
        first.root.rename(tmp_path / "gone")
        index.asked.clear()
        again = store(tmp_path, offline=True).prepare(cell(), matrix(index.url), interpreter)
        assert again.id == first.id
        assert index.asked == []

    def test_what_cells_share_is_downloaded_once_and_stored_once(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        one = store(tmp_path)
        roots = [
            one.prepare(cell(torch), matrix(index.url), interpreter).root
            for torch in ("2.4.1", "2.5.1")
        ]
        assert index.downloads("dependency") == 1
        files = {
            (root / f"lib/python{MINOR}/site-packages/dependency/__init__.py").stat().st_ino
            for root in roots
            if root is not None
        }
        assert len(files) == 1
        assert one.size().is_linked

    def test_it_can_be_adopted(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        built = store(tmp_path).prepare(cell(), matrix(index.url), interpreter)
        adopted = store(tmp_path / "other").adopt(built.python)
        assert adopted.python == built.python
        assert adopted.packages == built.packages
        assert adopted.index == "adopted"
        assert not (tmp_path / "other").exists()
        with pytest.raises(HarnessError, match="no torch is installed"):
            store(tmp_path).adopt(interpreter.path)


class TestFailures:
    def test_no_wheel(self, tmp_path: Path, index: Index, interpreter: Interpreter) -> None:
        index.wheels["simple"].clear()
        index.add("simple", "torch", "2.6.0", "cp37-cp37m-linux_x86_64")
        index.add("simple", "dependency", "1.0")
        with pytest.raises(EnvironmentFailed) as caught:
            store(tmp_path).prepare(cell("2.6.0"), matrix(index.url), interpreter)
        assert caught.value.reason is NotRunReason.NO_WHEEL
        assert "torch" in caught.value.evidence

    def test_an_index_that_is_not_there(self, tmp_path: Path, interpreter: Interpreter) -> None:
        env = {**os.environ, "UV_HTTP_TIMEOUT": "1"}
        offline = store(tmp_path, env=env, offline=True)
        with pytest.raises(EnvironmentFailed) as caught:
            offline.prepare(cell(), matrix("http://127.0.0.1:9"), interpreter)
        assert caught.value.reason is NotRunReason.INDEX_UNREACHABLE
        assert caught.value.detail.startswith("offline")

    def test_a_file_that_is_not_the_one_that_was_locked(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        first = store(tmp_path).prepare(cell(), matrix(index.url), interpreter)
        assert first.root is not None
        first.root.rename(tmp_path / "gone")
        (tmp_path / "uv").rename(tmp_path / "emptied")
        index.add("simple", "torch", "2.4.1", stranger="x = 1\n")
        with pytest.raises(EnvironmentFailed) as caught:
            store(tmp_path).prepare(cell(), matrix(index.url), interpreter)
        assert caught.value.reason is NotRunReason.ENVIRONMENT_FAILED
        assert "not the file that was locked" in caught.value.detail

    def test_a_change_is_found_and_mended_from_the_index(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        one = store(tmp_path)
        environment = one.prepare(cell(), matrix(index.url), interpreter)
        one.release(environment)
        assert environment.root is not None
        path = environment.root / f"lib/python{MINOR}/site-packages/torch/__init__.py"
        with path.open("a") as text:
            text.write("patched = True\n")
        again = one.prepare(cell(), matrix(index.url), interpreter)
        assert again.id == environment.id
        assert "patched" not in path.read_text()
        assert index.downloads("torch") == 2
        assert index.downloads("dependency") == 1

    def test_uv_fetches_again_what_was_dropped_from_its_cache(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        one = store(tmp_path)
        for torch in ("2.4.1", "2.5.1"):
            one.release(one.prepare(cell(torch), matrix(index.url), interpreter))
        (first, *_) = one.standing()[::-1]
        assert first.environment.torch_version == "2.4.1"
        assert first.environment.root is not None
        first.environment.root.rename(tmp_path / "gone")
        for path in (tmp_path / "gone").rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.unlink()
        assert free_from_cache(tmp_path / "uv", 10**9, keep=()) > 0
        again = one.prepare(cell("2.4.1"), matrix(index.url), interpreter)
        assert ask(again.python, "import torch, dependency; print(torch.__version__)") == "2.4.1"
        assert index.downloads("torch") == 3
        assert index.downloads("dependency") == 1, "the other environment holds it"


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
class TestProcesses:
    def test_killed_half_way_it_leaves_nothing_that_could_be_used(
        self, tmp_path: Path, index: Index, interpreter: Interpreter
    ) -> None:
        index.stalled = "/files/simple/torch-2.4.1-py3-none-any.whl"
        child = drive(tmp_path, index)
        assert child.stdout is not None
        with child.stdout:
            assert index.has_stalled.wait(60)
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=10)
        left = [path.name for path in (tmp_path / "environments").iterdir()]
        assert len(left) == 1
        assert re.fullmatch(r"\.tmp-[0-9a-f]{16}-\d+", left[0])
        one = store(tmp_path)
        assert one.standing() == ()
        assert one.find(cell(), matrix(index.url), interpreter) is None
        index.stalled = ""
        index.go.set()
        environment = one.prepare(cell(), matrix(index.url), interpreter)
        assert ask(environment.python, "import torch; print(torch.__version__)") == "2.4.1"
        standing = {path.name for path in (tmp_path / "environments").iterdir()}
        assert environment.id in standing
        assert one.verify(environment) == ()

    def test_two_at_once_build_once(self, tmp_path: Path, index: Index) -> None:
        children = [drive(tmp_path, index) for _ in range(2)]
        told = []
        for child in children:
            assert child.stdout is not None
            with child.stdout as lines:
                told.append(lines.read().decode().split())
            assert child.wait(timeout=60) == 0
        assert told[0][0] == told[1][0]
        assert index.downloads("torch") == 1
        assert len(list((tmp_path / "environments").iterdir())) == 1
