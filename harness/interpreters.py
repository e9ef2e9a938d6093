"""Finds Pythons where people have them, or has one fetched; and knows where uv is and what it may see.

A Python counts only when it ran and said what it is: a version manager's shim that points nowhere, a
broken link or a build for another processor is not an interpreter. Reads files and runs candidates;
reads no environment variable of its own process (`env` is passed in).
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness import process
from harness.errors import ExitStatus, HarnessError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PROBE_DEADLINE_S = 10.0
_FETCH_DEADLINE_S = 900.0

# Python 2 must be able to parse it, too: a candidate may be anything.
_QUESTION = """
import json, os, sys
flags = getattr(sys, "abiflags", "")
if os.name == "nt" and sys.version_info >= (3, 13):
    import sysconfig
    flags += "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
info = sys.version_info
level = {"alpha": "a", "beta": "b", "candidate": "rc"}.get(info[3])
minor = "%d.%d" % info[:2]
folders = ["include", "include/python" + minor + flags, "include/python" + minor]
json.dump({
    "version": "%s.%d%s" % (minor, info[2], "%s%d" % (level, info[4]) if level else ""),
    "implementation": sys.implementation.name,
    "free_threaded": "t" in flags,
    "wide": sys.maxsize > 2**32,
    "headers": any(os.path.exists(os.path.join(sys.base_prefix, f, "Python.h")) for f in folders),
    "executable": sys.executable,
}, sys.stdout)
"""

# What a user may have set for uv that leads to the same packages by another way. All else of uv's own
# variables could change what is resolved or how it is built without standing in any record.
_UV_ALLOWED = (
    "UV_CACHE_DIR",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_HTTP_TIMEOUT",
    "UV_INSECURE_HOST",
    "UV_KEYRING_PROVIDER",
    "UV_LINK_MODE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "XDG_DATA_HOME",
)
_UV_PYTHON_ALLOWED = (
    "UV_PYTHON_INSTALL_DIR",
    "UV_PYTHON_INSTALL_MIRROR",
    "UV_PYTHON_DOWNLOADS_JSON_URL",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python that ran.

    path: as it was found; for a virtual environment's, its base. real_path: links followed: what it is
    known by. version: full, `3.12.1`, `3.15.0a2`. has_headers: `Python.h` stands where compilers look.
    source: where it was found, in a word.
    """

    path: Path
    real_path: Path
    version: str
    implementation: str
    free_threaded: bool
    has_headers: bool
    source: str

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    path: Path
    source: str


def find_interpreters(
    pythons: Iterable[str], *, env: Mapping[str, str], extra: Sequence[Path] = ()
) -> dict[str, Interpreter]:
    """The best Python of this machine for each minor version asked for that it has, in that order.

    pythons: minor versions, `3.12`. extra: interpreters that a user named; they win over all others.
    CPython only, 64 bit, and not the free-threaded build. Of several, one with headers is preferred
    (without `Python.h` Inductor cannot compile), then the newest patch, then the order of search: PATH,
    version managers, uv's, the system's, conda's, the Windows launcher's.
    """
    wanted = tuple(dict.fromkeys(pythons))
    candidates: dict[Path, _Candidate] = {}
    for found in _candidates(wanted, env, extra):
        for candidate in _without_virtual_environment(found):
            candidates.setdefault(_real(candidate.path), candidate)
    if not candidates:
        return {}
    with ThreadPoolExecutor(max_workers=min(8, len(candidates))) as pool:
        probed = list(pool.map(lambda candidate: _probe(candidate, env), candidates.values()))
    best: dict[str, Interpreter] = {}
    for interpreter in probed:
        if interpreter is None or interpreter.minor not in wanted:
            continue
        rival = best.get(interpreter.minor)
        if rival is None or _rank(interpreter) > _rank(rival):
            best[interpreter.minor] = interpreter
    return {python: best[python] for python in wanted if python in best}


def fetch_interpreter(
    minor: str,
    *,
    env: Mapping[str, str],
    deadline_s: float = _FETCH_DEADLINE_S,
    cancel: threading.Event | None = None,
) -> Interpreter | str:
    """Have uv download a Python; the interpreter, or uv's last lines where that failed.

    minor: `3.12`. Goes to uv's own folder for Pythons, where later runs find it; no command is
    put on PATH. Takes some seconds to fail where nothing answers: use `InterpreterFetcher` to ask once.
    """
    command = (str(find_uv(env)), "python", "install", "--no-config", "--no-progress", "--no-bin")
    environment = uv_environment(env, allow=_UV_PYTHON_ALLOWED)
    finished = process.run(
        (*command, minor), deadline_s=deadline_s, env=environment, cwd=Path.home(), cancel=cancel
    )
    if finished.cancelled:
        return "interrupted"
    if finished.timed_out:
        return f"uv did not finish within {deadline_s:.0f} s"
    if finished.is_success:
        candidates = list(_managed_by_uv((minor,), env))
        probed = [found for found in (_probe(one, env) for one in candidates) if found is not None]
        fitting = [found for found in probed if found.minor == minor]
        if fitting:
            return max(fitting, key=_rank)
        finished_text = "uv reported success, but no interpreter that runs stands in its folder"
        return "\n".join(filter(None, (finished_text, finished.stderr_tail.strip())))
    return "\n".join(finished.stderr_tail.strip().splitlines()[-12:]) or "uv said nothing"


@dataclass(slots=True)
class InterpreterFetcher:
    """Asks for each Python at most once in a run, from however many threads.

    offline: nothing is asked for at all.
    """

    env: Mapping[str, str]
    offline: bool = False
    cancel: threading.Event | None = None
    _answers: dict[str, Interpreter | str] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def fetch(self, minor: str) -> Interpreter | str:
        """The interpreter, or why there is none. A second caller waits for the first one's answer."""
        if self.offline:
            return "offline: no interpreter was downloaded"
        with self._lock:
            if minor not in self._answers:
                self._answers[minor] = fetch_interpreter(minor, env=self.env, cancel=self.cancel)
            return self._answers[minor]


def find_uv(env: Mapping[str, str]) -> Path:
    """The uv that this project's lock file pins: its package's, else beside Python, else on PATH.

    Raises: HarnessError when there is none.
    """
    with suppress(ImportError, FileNotFoundError):
        from uv import find_uv_bin

        return Path(find_uv_bin())
    beside = shutil.which("uv", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("uv", path=env.get("PATH", ""))
    if found is None:
        message = "uv was not found, which builds the environments"
        hint = f"{sys.executable} -m pip install uv"
        raise HarnessError(message, hint=hint, status=ExitStatus.OUR_FAULT)
    return Path(found)


def uv_environment(env: Mapping[str, str], *, allow: Sequence[str] = ()) -> dict[str, str]:
    """What uv sees: the common allow-list, mirrors and certificates, and no other setting of its own.

    A certificate bundle that the user named for other tools is uv's too: it reads none of their names.
    """
    overrides = {"NO_COLOR": "1"}
    if not env.get("SSL_CERT_FILE"):
        named = (env.get(name) for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"))
        bundle = next((path for path in named if path and Path(path).is_file()), None)
        if bundle is not None:
            overrides["SSL_CERT_FILE"] = bundle
    kept = process.allowed_environment(env, allow=(*_UV_ALLOWED, *allow), overrides=overrides)
    if kept.get("UV_LINK_MODE") == "symlink":
        # Environments of links into a cache that may be emptied would break one by one.
        del kept["UV_LINK_MODE"]
    return kept


def _rank(interpreter: Interpreter) -> tuple[bool, bool, Version]:
    # A tie keeps the one found first.
    return (
        interpreter.source == "given",
        interpreter.has_headers,
        Version(interpreter.version),
    )


def _probe(candidate: _Candidate, env: Mapping[str, str]) -> Interpreter | None:
    argv = (str(candidate.path), "-I", "-S", "-c", _QUESTION)
    try:
        finished = process.run(
            argv,
            deadline_s=_PROBE_DEADLINE_S,
            env=process.allowed_environment(env, allow=("PYENV_*",)),
            cwd=candidate.path.parent,
        )
        answer = json.loads(finished.stdout_tail) if finished.is_success else None
        if not answer or answer["implementation"] != "cpython":
            return None
        if answer["free_threaded"] or not answer["wide"]:
            return None
        Version(answer["version"])
        # A shim is not what runs; a link is, by the name that stays when a patch release comes.
        real = _real(Path(answer["executable"]))
        path = candidate.path if _real(candidate.path) == real else Path(answer["executable"])
        return Interpreter(
            path=path,
            real_path=real,
            version=answer["version"],
            implementation=answer["implementation"],
            free_threaded=answer["free_threaded"],
            has_headers=answer["headers"],
            source=candidate.source,
        )
    except (OSError, ValueError, KeyError, TypeError, InvalidVersion):
        return None


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        return path


def _without_virtual_environment(candidate: _Candidate) -> Iterator[_Candidate]:
    """The candidate, or, where it belongs to a virtual environment, the Python that made it.

    The harness runs in such an environment itself, and it is the first on PATH.
    """
    for folder in (candidate.path.parent, candidate.path.parent.parent):
        with suppress(OSError, UnicodeDecodeError):
            for line in (folder / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "home":
                    home = Path(value.strip())
                    names = (_real(candidate.path).name, "python3", "python", "python.exe")
                    bases = (home / name for name in names)
                    base = next((path for path in bases if path.exists()), None)
                    if base is not None:
                        yield from _without_virtual_environment(
                            _Candidate(path=base, source=candidate.source)
                        )
            return
    yield candidate


def _candidates(
    pythons: tuple[str, ...], env: Mapping[str, str], extra: Sequence[Path]
) -> Iterator[_Candidate]:
    for path in extra:
        yield _Candidate(path=path, source="given")
    yield from _on_path(pythons, env)
    yield from _of_version_managers(pythons, env)
    yield from _managed_by_uv(pythons, env)
    yield from _of_system(pythons)
    yield from _of_conda(env)
    if sys.platform == "win32":  # pragma: no cover
        yield from _of_launcher(env)


def _home(env: Mapping[str, str]) -> Path:
    named = env.get("USERPROFILE" if sys.platform == "win32" else "HOME")
    return Path(named) if named else Path.home()


def _names(pythons: tuple[str, ...]) -> tuple[str, ...]:
    suffix = ".exe" if sys.platform == "win32" else ""
    return tuple(
        f"{name}{suffix}" for name in (*(f"python{one}" for one in pythons), "python3", "python")
    )


def _in_folder(folder: Path, names: Sequence[str], source: str) -> Iterator[_Candidate]:
    for name in names:
        path = folder / name
        with suppress(OSError):
            if path.is_file():
                yield _Candidate(path=path, source=source)


def _on_path(pythons: tuple[str, ...], env: Mapping[str, str]) -> Iterator[_Candidate]:
    shims = _pyenv_root(env) / "shims"
    separator = ";" if sys.platform == "win32" else ":"
    for entry in dict.fromkeys(env.get("PATH", "").split(separator)):
        folder = Path(entry)
        # pyenv's shims are slow and lead to its `versions`, which are looked at in any case.
        if entry and folder.is_absolute() and folder != shims:
            yield from _in_folder(folder, _names(pythons), "PATH")


def _pyenv_root(env: Mapping[str, str]) -> Path:
    return Path(env["PYENV_ROOT"]) if env.get("PYENV_ROOT") else _home(env) / ".pyenv"


def _of_version_managers(pythons: tuple[str, ...], env: Mapping[str, str]) -> Iterator[_Candidate]:
    data = Path(env["XDG_DATA_HOME"]) if env.get("XDG_DATA_HOME") else _home(env) / ".local/share"
    roots = (
        ("pyenv", _pyenv_root(env) / "versions"),
        ("pyenv", _home(env) / ".pyenv/pyenv-win/versions"),
        ("asdf", Path(env.get("ASDF_DATA_DIR") or _home(env) / ".asdf") / "installs/python"),
        ("mise", Path(env.get("MISE_DATA_DIR") or data / "mise") / "installs/python"),
    )
    for source, root in roots:
        for folder in _folders(root):
            if _may_be(folder.name, pythons):
                yield from _in_prefix(folder, source)


def _managed_by_uv(pythons: tuple[str, ...], env: Mapping[str, str]) -> Iterator[_Candidate]:
    if env.get("UV_PYTHON_INSTALL_DIR"):
        root = Path(env["UV_PYTHON_INSTALL_DIR"])
    elif sys.platform == "win32":
        root = Path(env.get("APPDATA") or _home(env) / "AppData/Roaming") / "uv/data/python"
    else:
        root = Path(env.get("XDG_DATA_HOME") or _home(env) / ".local/share") / "uv/python"
    for folder in _folders(root):
        name, _, rest = folder.name.partition("-")
        if name == "cpython" and _may_be(rest, pythons):
            yield from _in_prefix(folder, "uv")


def _of_system(pythons: tuple[str, ...]) -> Iterator[_Candidate]:
    folders = () if sys.platform == "win32" else ("/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
    for folder in folders:
        yield from _in_folder(Path(folder), _names(pythons)[:-2], "system")


def _of_conda(env: Mapping[str, str]) -> Iterator[_Candidate]:
    names = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")
    roots = [_home(env) / name for name in names]
    roots += [Path(env[name]) for name in ("CONDA_PREFIX", "MAMBA_ROOT_PREFIX") if env.get(name)]
    for root in dict.fromkeys(roots):
        for prefix in (root, *_folders(root / "envs")):
            yield from _in_prefix(prefix, "conda")


def _of_launcher(env: Mapping[str, str]) -> Iterator[_Candidate]:  # pragma: no cover
    launcher = shutil.which("py", path=env.get("PATH", ""))
    if launcher is None:
        return
    with suppress(OSError):
        finished = process.run(
            (launcher, "-0p"),
            deadline_s=_PROBE_DEADLINE_S,
            env=process.allowed_environment(env),
            cwd=Path(launcher).parent,
        )
        yield from _read_launcher(finished.stdout_tail)


def _read_launcher(text: str) -> Iterator[_Candidate]:
    """Reads `py -0p`: ` -V:3.12 *        C:\\Python312\\python.exe` a line."""
    for line in text.splitlines():
        _, found, rest = line.strip().partition(" ")
        path = rest.strip().removeprefix("*").strip()
        if line.strip().startswith("-") and found and path:
            yield _Candidate(path=Path(path), source="py launcher")


def _in_prefix(prefix: Path, source: str) -> Iterator[_Candidate]:
    if sys.platform == "win32":
        yield from _in_folder(prefix, ("python.exe",), source)
    else:
        yield from _in_folder(prefix / "bin", ("python3", "python"), source)


def _folders(root: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(path for path in root.iterdir() if path.is_dir()))
    except OSError:
        return ()


def _may_be(name: str, pythons: tuple[str, ...]) -> bool:
    """Whether a folder of this name could hold one of these Pythons (`3.12.1`; not `3.6.15`)."""
    if not name[:1].isdigit():
        return True
    return any(name == one or name.startswith((f"{one}.", f"{one}-")) for one in pythons)
