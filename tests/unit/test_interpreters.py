"""Pythons found where people have them, and only those that run; fake ones are small scripts."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import interpreters
from harness.errors import HarnessError
from harness.interpreters import (
    InterpreterFetcher,
    fetch_interpreter,
    find_interpreters,
    find_uv,
    uv_environment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

posix = pytest.mark.skipif(sys.platform == "win32", reason="fake Pythons are shell scripts")
THIS_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


def put_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def put_python(path: Path, version: str, **facts: object) -> Path:
    """A fake Python that says this of itself, whatever it is asked."""
    answer = {
        "version": version,
        "implementation": "cpython",
        "free_threaded": False,
        "wide": True,
        "headers": True,
        "executable": str(path),
        **facts,
    }
    return put_script(path, f"#!/bin/sh\necho '{json.dumps(answer)}'\n")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing stands yet, on a machine whose system has no Python."""
    monkeypatch.setattr(interpreters, "_of_system", lambda _pythons: iter(()))
    home = tmp_path / "home"
    home.mkdir()
    return home


def find(
    home: Path,
    *pythons: str,
    path: Sequence[Path] = (),
    extra: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
) -> dict[str, interpreters.Interpreter]:
    search = os.pathsep.join(map(str, path))
    variables = {"HOME": str(home), "PATH": search, **(env or {})}
    return find_interpreters(pythons or ("3.12",), env=variables, extra=extra)


@pytest.mark.process
@posix
class TestFinding:
    def test_a_real_one_says_what_it_is(self, home: Path) -> None:
        base = Path(sys.base_prefix) / "bin"
        found = find(home, THIS_MINOR, path=[base])[THIS_MINOR]
        assert found.version == ".".join(map(str, sys.version_info[:3]))
        assert found.minor == THIS_MINOR
        assert found.real_path.is_file()
        assert not found.real_path.is_symlink()
        assert (found.implementation, found.free_threaded) == ("cpython", False)

    def test_the_harness_own_virtual_environment_is_traced_to_its_base(self, home: Path) -> None:
        if sys.prefix == sys.base_prefix:
            pytest.skip("the tests do not run in a virtual environment")
        found = find(home, THIS_MINOR, path=[Path(sys.executable).parent])[THIS_MINOR]
        assert Path(sys.prefix) not in found.path.parents
        assert found.real_path.is_relative_to(Path(sys.base_prefix).resolve())

    def test_the_newest_patch_wins_wherever_it_stands(self, home: Path) -> None:
        on_path = put_python(home / "bin/python3.12", "3.12.1").parent
        newest = put_python(home / ".pyenv/versions/3.12.10/bin/python3", "3.12.10")
        put_python(home / ".local/share/uv/python/cpython-3.12.9-linux/bin/python3", "3.12.9")
        found = find(home, path=[on_path])["3.12"]
        assert (found.version, found.path, found.source) == ("3.12.10", newest, "pyenv")

    def test_of_equal_ones_the_first_on_path_wins(self, home: Path) -> None:
        first = put_python(home / "a/python3.12", "3.12.1")
        second = put_python(home / "b/python3.12", "3.12.1")
        found = find(home, path=[first.parent, second.parent])["3.12"]
        assert (found.path, found.source) == (first, "PATH")

    def test_one_with_headers_is_preferred_to_a_newer_one_without(self, home: Path) -> None:
        bare = put_python(home / "a/python3.12", "3.12.9", headers=False)
        full = put_python(home / "b/python3.12", "3.12.1")
        found = find(home, path=[bare.parent, full.parent])["3.12"]
        assert (found.path, found.has_headers) == (full, True)
        assert find(home, path=[bare.parent])["3.12"].has_headers is False

    def test_a_release_is_preferred_to_a_release_candidate(self, home: Path) -> None:
        early = put_python(home / "a/python3.12", "3.12.0rc2")
        late = put_python(home / "b/python3.12", "3.12.0")
        assert find(home, path=[early.parent, late.parent])["3.12"].version == "3.12.0"

    def test_the_one_that_the_user_named_wins(self, home: Path) -> None:
        newest = put_python(home / "a/python3.12", "3.12.9")
        named = put_python(home / "mine/python", "3.12.1", headers=False)
        found = find(home, path=[newest.parent], extra=[named])["3.12"]
        assert (found.path, found.source) == (named, "given")

    @pytest.mark.parametrize(
        ("place", "source"),
        [
            (".pyenv/versions/3.12.1/bin/python3", "pyenv"),
            (".pyenv/versions/my-build/bin/python", "pyenv"),
            (".asdf/installs/python/3.12.1/bin/python3", "asdf"),
            (".local/share/mise/installs/python/3.12/bin/python3", "mise"),
            (".local/share/uv/python/cpython-3.12.1-linux-x86_64-gnu/bin/python3", "uv"),
            ("miniconda3/bin/python", "conda"),
            ("miniforge3/envs/torch/bin/python3", "conda"),
        ],
    )
    def test_where_people_have_them(self, home: Path, place: str, source: str) -> None:
        put_python(home / place, "3.12.1")
        found = find(home)["3.12"]
        assert (found.path, found.source) == (home / place, source)

    @pytest.mark.parametrize(
        ("variable", "place"),
        [
            ("PYENV_ROOT", "versions/3.12.1/bin/python3"),
            ("UV_PYTHON_INSTALL_DIR", "cpython-3.12.1-linux/bin/python3"),
            ("CONDA_PREFIX", "bin/python3"),
            ("XDG_DATA_HOME", "uv/python/cpython-3.12.1-linux/bin/python3"),
            ("ASDF_DATA_DIR", "installs/python/3.12.1/bin/python3"),
        ],
    )
    def test_where_a_variable_points(
        self, home: Path, tmp_path: Path, variable: str, place: str
    ) -> None:
        put_python(tmp_path / "elsewhere" / place, "3.12.1")
        assert find(home) == {}
        assert "3.12" in find(home, env={variable: str(tmp_path / "elsewhere")})

    def test_what_does_not_run_is_no_interpreter(self, home: Path) -> None:
        folder = home / "bin"
        put_script(
            folder / "python3.12", "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127"
        )
        put_script(folder / "python3", "#!/nowhere/python\n")
        (folder / "python").symlink_to(folder / "python")
        assert find(home, path=[folder]) == {}

    def test_what_hangs_is_no_interpreter(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(interpreters, "_PROBE_DEADLINE_S", 0.2)
        folder = put_script(home / "bin/python3.12", "#!/bin/sh\nexec /bin/sleep 60").parent
        assert find(home, path=[folder]) == {}

    @pytest.mark.parametrize(
        "facts",
        [
            {"implementation": "pypy"},
            {"free_threaded": True},
            {"wide": False},
            {"version": "nonsense"},
            {"version": "3.13.1"},
        ],
        ids=str,
    )
    def test_what_is_not_meant(self, home: Path, facts: dict[str, object]) -> None:
        put_python(home / "bin/python3.12", **{"version": "3.12.1", **facts})  # type: ignore[arg-type]
        assert find(home, path=[home / "bin"]) == {}

    def test_a_shim_stands_for_what_it_runs(self, home: Path) -> None:
        real = put_python(home / "real/python3.12", "3.12.1")
        put_python(home / "shims/python3.12", "3.12.1", executable=str(real))
        assert find(home, path=[home / "shims"])["3.12"].path == real

    def test_a_link_keeps_its_name(self, home: Path) -> None:
        real = put_python(home / "opt/3.12.1/python3.12", "3.12.1")
        (home / "bin").mkdir()
        (home / "bin/python3.12").symlink_to(real)
        found = find(home, path=[home / "bin"])["3.12"]
        assert (found.path, found.real_path) == (home / "bin/python3.12", real.resolve())

    def test_one_that_is_reached_twice_runs_once(self, home: Path) -> None:
        count = home / "count"
        real = put_script(home / "bin/python3.12", f"#!/bin/sh\necho >> {count}\nexit 1")
        for name in ("python3", "python"):
            (real.parent / name).symlink_to(real)
        find(home, path=[real.parent])
        assert count.read_text() == "\n"

    def test_folders_that_cannot_hold_it_are_not_run(self, home: Path) -> None:
        count = home / "count"
        for version in ("3.6.15", "3.1.5", "3.13.0"):
            path = home / f".pyenv/versions/{version}/bin/python3"
            put_script(path, f"#!/bin/sh\necho >> {count}\nexit 1")
        assert find(home, "3.12") == {}
        assert not count.exists()

    def test_the_answer_is_in_the_order_of_the_question(self, home: Path) -> None:
        for minor in ("3.10", "3.11", "3.12"):
            put_python(home / f"bin/python{minor}", f"{minor}.1")
        assert list(find(home, "3.12", "3.10", "3.9", path=[home / "bin"])) == ["3.12", "3.10"]


def test_the_windows_launcher_is_read() -> None:
    text = (
        " -V:3.13 *        C:\\Python313\\python.exe\n"
        " -V:3.12          C:\\Program Files\\Python312\\python.exe\n"
        "no installed Pythons found\n"
    )
    found = [(one.path, one.source) for one in interpreters._read_launcher(text)]
    assert found == [
        (Path("C:\\Python313\\python.exe"), "py launcher"),
        (Path("C:\\Program Files\\Python312\\python.exe"), "py launcher"),
    ]


@pytest.fixture
def fake_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path at which a test puts its own uv."""
    path = tmp_path / "uv"
    monkeypatch.setattr(interpreters, "find_uv", lambda _env: path)
    return path


@pytest.mark.process
@posix
class TestFetching:
    def test_what_uv_installs_is_found(self, home: Path, fake_uv: Path) -> None:
        installed = home / ".local/share/uv/python/cpython-3.12.8-linux/bin/python3"
        source = put_python(home / "download", "3.12.8", executable=str(installed))
        put_script(
            fake_uv,
            f'#!/bin/sh\necho "$@" > {home}/asked\nenv > {home}/env\n'
            f"mkdir -p {installed.parent}\ncp {source} {installed}\n",
        )
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "UV_INDEX": "http://elsewhere"}
        found = fetch_interpreter("3.12", env=env)
        assert isinstance(found, interpreters.Interpreter)
        assert (found.version, found.path, found.source) == ("3.12.8", installed, "uv")
        asked = (home / "asked").read_text().split()
        assert asked == ["python", "install", "--no-config", "--no-progress", "--no-bin", "3.12"]
        assert "UV_INDEX" not in (home / "env").read_text()

    def test_a_failure_is_told_in_uvs_own_words(self, home: Path, fake_uv: Path) -> None:
        put_script(
            fake_uv, "#!/bin/sh\necho 'error: Failed to install' >&2\necho 'cause: dns' >&2\nexit 1"
        )
        told = fetch_interpreter("3.14", env={"HOME": str(home), "PATH": os.environ["PATH"]})
        assert told == "error: Failed to install\ncause: dns"

    def test_success_without_an_interpreter_is_no_success(self, home: Path, fake_uv: Path) -> None:
        put_script(fake_uv, "#!/bin/sh\nexit 0")
        told = fetch_interpreter("3.14", env={"HOME": str(home), "PATH": os.environ["PATH"]})
        assert isinstance(told, str)
        assert "no interpreter that runs" in told

    def test_each_python_is_asked_for_once(self, home: Path, fake_uv: Path) -> None:
        put_script(fake_uv, f"#!/bin/sh\necho >> {home}/count\necho no >&2\nexit 1")
        fetcher = InterpreterFetcher(env={"HOME": str(home), "PATH": os.environ["PATH"]})
        assert [fetcher.fetch(one) for one in ("3.14", "3.14", "3.15", "3.14")] == ["no"] * 4
        assert (home / "count").read_text() == "\n\n"


def test_offline_nothing_is_asked_for(home: Path) -> None:
    told = InterpreterFetcher(env={"HOME": str(home)}, offline=True).fetch("3.14")
    assert isinstance(told, str)
    assert told.startswith("offline")


def test_uv_is_found_beside_the_harness() -> None:
    assert find_uv({}).name.startswith("uv")
    assert find_uv({}).is_file()


def test_without_uv_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setattr(shutil, "which", lambda *_arguments, **_options: None)
    with pytest.raises(HarnessError) as caught:
        find_uv({"PATH": "/nowhere"})
    assert caught.value.hint.endswith("-m pip install uv")


class TestWhatUvSees:
    def test_mirrors_and_certificates_pass_and_settings_do_not(self) -> None:
        env = {
            "PATH": "/bin",
            "UV_DEFAULT_INDEX": "https://mirror/simple",
            "UV_HTTP_TIMEOUT": "60",
            "UV_TORCH_BACKEND": "cpu",
            "UV_EXCLUDE_NEWER": "2020-01-01",
            "UV_INDEX": "https://more",
            "UV_RESOLUTION": "lowest",
            "UV_NO_CACHE": "1",
            "PIP_INDEX_URL": "https://pip",
            "PYTHONPATH": "/surprise",
            "VIRTUAL_ENV": "/harness",
            "CONDA_PREFIX": "/conda",
        }
        assert uv_environment(env) == {
            "PATH": "/bin",
            "UV_DEFAULT_INDEX": "https://mirror/simple",
            "UV_HTTP_TIMEOUT": "60",
            "NO_COLOR": "1",
        }

    def test_a_bundle_that_is_named_for_other_tools_is_used(self, tmp_path: Path) -> None:
        bundle = tmp_path / "certs.pem"
        bundle.touch()
        assert uv_environment({"PIP_CERT": str(bundle)})["SSL_CERT_FILE"] == str(bundle)
        own = {"PIP_CERT": str(bundle), "SSL_CERT_FILE": "/mine.pem"}
        assert uv_environment(own)["SSL_CERT_FILE"] == "/mine.pem"
        assert "SSL_CERT_FILE" not in uv_environment({"PIP_CERT": str(tmp_path / "absent")})

    @pytest.mark.parametrize(("mode", "is_kept"), [("copy", True), ("symlink", False)])
    def test_links_into_the_cache_are_refused(self, mode: str, is_kept: bool) -> None:
        assert ("UV_LINK_MODE" in uv_environment({"UV_LINK_MODE": mode})) is is_kept
