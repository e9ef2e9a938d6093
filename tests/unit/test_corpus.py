"""Case files are read as they are, and every slip in one is a sentence with its place."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from harness.corpus import Case, load_corpus
from harness.worker.paths import MAIN_PATHS

FIXTURES = Path(__file__).parents[1] / "fixtures" / "corpus"
GOOD = sorted(FIXTURES.glob("good-*.py"))
BAD = sorted(FIXTURES.glob("bad*.py"))

EXPECTED: dict[str, dict[str, object]] = {
    "good-check": {
        "kind": "check",
        "paths": MAIN_PATHS,
        "source": ("https://example.org/one",),
        "deadline_s": 60.0,
    },
    "good-comments-first": {
        "kind": "run",
        "title": "A single-quoted title, it's on two lines \\d.",
        "torch": SpecifierSet(">=2.3"),
    },
    "good-defaults": {
        "kind": "run",
        "title": "Is it captured?",
        "paths": MAIN_PATHS,
        "python": SpecifierSet(),
        "torch": SpecifierSet(),
        "devices": ("cpu", "cuda"),
        "isolation": "fork",
        "deadline_s": None,
        "source": (),
    },
    "good-every-key": {
        "kind": "run",
        "title": "Is `except*` captured,",
        "paths": ("aot", "inductor-dynamic"),
        "python": SpecifierSet(">=3.11,<3.14"),
        "torch": SpecifierSet(">=2.1"),
        "devices": ("cuda",),
        "isolation": "process",
        "deadline_s": 2.5,
        "source": ("https://peps.python.org/pep-0654/", "https://example.org/second"),
    },
    "good-newer-syntax": {"kind": "run", "python": SpecifierSet(">=3.14")},
    "good-quoted-block": {"kind": "run", "deadline_s": 5.0},
    "good-run-variable": {"kind": "run", "paths": ("dynamo",)},
    "good-run-without-block": {
        "kind": "run",
        "paths": MAIN_PATHS,
        "source": ("https://example.org/x",),
    },
    "good-script": {
        "kind": "script",
        "title": "A class pattern needs MATCH_CLASS: a graph break from 2.3 on.",
        "paths": ("script",),
        "isolation": "process",
        "source": ("https://example.org/issues/171274", "https://example.org/a_(b)"),
    },
    "good-script-with-block": {
        "kind": "script",
        "title": "What does `\\d` of a raw docstring show?",
        "paths": ("script",),
        "isolation": "process",
        "devices": ("cpu",),
    },
    "good-script-with-its-own-run": {
        "kind": "script",
        "title": "Does `run` survive here?",
        "paths": ("script",),
        "isolation": "process",
    },
    "good-script-without-docstring": {
        "kind": "script",
        "title": "good-script-without-docstring.py",
        "paths": ("script",),
        "isolation": "process",
        "source": (),
    },
}


def only_case(root: Path) -> Case:
    corpus = load_corpus([root])
    assert [mistake.render() for mistake in corpus.mistakes] == []
    (case,) = corpus.cases
    return case


def told(*roots: Path) -> list[str]:
    return [mistake.render() for mistake in load_corpus(roots).mistakes]


def write(file: Path, text: str = "import torch\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def case_of(tmp_path: Path, block: str) -> Case:
    text = f'"""Asked."""\n# /// case\n{block}\n# ///\ndef check(compile): ...\n'
    return only_case(write(tmp_path / "some" / "case.py", text))


def test_the_fixtures_are_there() -> None:
    assert {file.stem for file in GOOD} == EXPECTED.keys()
    assert len(BAD) > 40


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_a_good_case_is_what_it_says(file: Path) -> None:
    case = only_case(file)
    assert case.id == f"corpus/{file.stem}"
    assert case.category == "corpus"
    found = {name: getattr(case, name) for name in EXPECTED[file.stem]}
    assert found == EXPECTED[file.stem]


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_mistake_is_told_with_its_place_and_its_cure(file: Path) -> None:
    corpus = load_corpus([file])
    assert corpus.cases == ()
    found = "".join(f"{mistake.render()}\n" for mistake in corpus.mistakes)
    expected = file.with_suffix(".txt").read_text(encoding="utf-8")
    assert found.replace(str(file), file.name) == expected


def test_a_mistake_hides_no_other_case() -> None:
    corpus = load_corpus([FIXTURES])
    assert [case.id for case in corpus.cases] == sorted(EXPECTED)
    assert len(corpus.mistakes) >= len(BAD)


def test_text_and_digest_are_those_of_the_file(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf"""Windows wrote this."""\r\n# /// case\r\n# deadline = 3\r\n# ///\r\n'
    file = tmp_path / "windows.py"
    file.write_bytes(data)
    case = only_case(file)
    assert case.text == data.decode("utf-8-sig")
    assert case.digest == hashlib.sha256(data).hexdigest()
    assert (case.title, case.deadline_s, case.kind) == ("Windows wrote this.", 3.0, "script")


def test_a_declared_encoding_is_read_as_python_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_bytes('# coding: latin-1\n"""Is a café captured?"""\n'.encode("latin-1"))
    assert only_case(file).title == "Is a café captured?"


def test_a_null_byte_is_no_python(tmp_path: Path) -> None:
    file = write(tmp_path / "null.py", '"""x"""\nname = "\0"\n')
    assert told(file) == [
        f"error: {file}:2: a null byte: this is no Python file\n  hint: save the file as UTF-8"
    ]


def test_endless_nesting_is_a_mistake_like_any_other(tmp_path: Path) -> None:
    text = f'"""Asked."""\n# /// case\n# paths = {"[" * 100_000}\n# ///\n'
    (mistake,) = load_corpus([write(tmp_path / "deep.py", text)]).mistakes
    assert mistake.message.startswith("the case block is not TOML: ")


def test_ids_are_paths_below_the_folder_in_order(tmp_path: Path) -> None:
    for name in ("b/y.py", "b/c/z.py", "a.py", "b/_skipped.py", ".hidden/x.py", "_/x.py", "x.txt"):
        write(tmp_path / "mine" / name)
    corpus = load_corpus([tmp_path / "mine"])
    found = [(case.id, case.category) for case in corpus.cases]
    assert found == [("a", "mine"), ("b/c/z", "b/c"), ("b/y", "b")]
    assert corpus.mistakes == ()


def test_a_link_to_a_folder_is_not_followed_and_one_to_a_file_is(tmp_path: Path) -> None:
    write(tmp_path / "root" / "real.py")
    (tmp_path / "root" / "loop").symlink_to(tmp_path / "root", target_is_directory=True)
    (tmp_path / "root" / "same.py").symlink_to("real.py")
    assert [case.id for case in load_corpus([tmp_path / "root"]).cases] == ["real", "same"]


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / "good.py")
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    corpus = load_corpus([tmp_path])
    assert [case.id for case in corpus.cases] == ["good"]
    assert [mistake.render() for mistake in corpus.mistakes] == [
        f"error: {tmp_path / 'gone.py'}: cannot be read: {os.strerror(2)}"
    ]


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert told(tmp_path) == [f"error: {tmp_path}: cannot be read: Permission denied"]


def test_a_single_file_is_named_after_its_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "my repros (old)" / "one.py")
    case = only_case(file)
    assert (case.id, case.category) == ("my-repros-old-/one", "my-repros-old-")


def test_a_file_at_the_root_of_a_disk_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    class Root:
        name = ""

        def resolve(self) -> Root:
            return self

    monkeypatch.setattr(Path, "parent", property(lambda _self: Root()))
    assert only_case(GOOD[0]).id == GOOD[0].stem


def test_a_root_that_is_not_there_or_holds_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / "notes.txt")
    roots = [
        tmp_path / "missing",
        tmp_path / "missing.py",
        tmp_path / "empty",
        tmp_path / "notes.txt",
    ]
    hint = "a case is a *.py file; names that start with _ or . are passed over"
    assert told(*roots) == [
        f"error: {roots[0]}: there is no such folder or file of cases",
        f"error: {roots[1]}: there is no such folder or file of cases",
        f"error: {roots[2]}: the folder holds no case\n  hint: {hint}",
        f"error: {roots[3]}: the file is no case: its name does not end in .py",
    ]


def test_two_files_of_one_id_are_a_mistake_and_the_first_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "one" / "a" / "x.py", "import torch  # first\n")
    second = write(tmp_path / "two" / "a" / "x.py", "import torch  # second\n")
    corpus = load_corpus([tmp_path / "one", tmp_path / "two"])
    assert [case.file for case in corpus.cases] == [first]
    (mistake,) = corpus.mistakes
    assert mistake.where == str(second)
    assert mistake.message == f"the id 'a/x' is already that of {first}"
    assert mistake.hint == "rename one of the two files"


def test_one_file_by_two_roots_is_one_case(tmp_path: Path) -> None:
    file = write(tmp_path / "cases" / "a" / "x.py")
    corpus = load_corpus([tmp_path / "cases", file, tmp_path / "cases"])
    assert [case.id for case in corpus.cases] == ["a/x"]
    assert corpus.mistakes == ()


@pytest.mark.parametrize(
    ("python", "torch", "why"),
    [
        ("3.11", "2.1.0", ""),
        ("3.12.4", "2.4.1+cpu", ""),
        ("3.10", "2.1.0", "needs Python >=3.11"),
        ("3.11", "2.0.1+cu117", "needs torch >=2.1"),
        ("3.10.12", "2.0.0", "needs Python >=3.11 and torch >=2.1"),
        ("3.15.0rc1", "2.16.0.dev20261101", ""),
        ("3.13.0+", "built-at-home", ""),
    ],
)
def test_where_a_case_applies(tmp_path: Path, python: str, torch: str, why: str) -> None:
    case = case_of(tmp_path, '# python = ">=3.11"\n# torch = ">=2.1"')
    assert case.applies(python, torch) == why


def test_a_case_without_needs_applies_everywhere(tmp_path: Path) -> None:
    assert case_of(tmp_path, "#").applies("3.10", "2.0.0a1") == ""


SCRIPTS = {
    "environment first": "import os\nos.environ['CXX'] = 'none'\nimport torch\nprint(torch.compile(abs)(1))\n",
    "gate": "import sys, torch\nif not torch.cuda.is_available():\n    sys.exit(0)\n",
    "decorated": "import torch\n\n@torch.compile(backend='eager')\ndef f(t):\n    return t\n\nassert f(1)\n",
    "calls its own run": "def run(x):\n    return x\n\nrun(1)\n",
    "compiles its own run": "import torch\ndef run(x):\n    return x\ntorch.compile(run)(1)\n",
    "variables": "run = print\ninputs: int = 1\ncheck = inputs == 2\nrun(inputs)\n",
    "methods": "class A:\n    def run(self): ...\n    def check(self): ...\nA().run()\n",
    "other names": "def runner(): ...\ndef check_all(): ...\ninputs_of = 1\n",
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_what_anybody_may_write_is_a_script(tmp_path: Path, text: str) -> None:
    case = only_case(write(tmp_path / "x.py", f'"""A title."""\n{text}'))
    assert (case.kind, case.paths, case.isolation) == ("script", ("script",), "process")


@pytest.mark.parametrize(
    "text",
    ["def check(compile): ...", "def run(x): ...\ndef inputs(): ...\n_ = run(*inputs())"],
)
def test_without_a_block_the_names_still_make_a_case(tmp_path: Path, text: str) -> None:
    assert only_case(write(tmp_path / "x.py", f"{text}\n")).kind in ("check", "run")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"one"; x = 1', "one"),
        ('u"""\n\n   two  words \n"""', "two words"),
        ("R'\\n'", "\\n"),
        ('"""tab\\there \\"quoted\\" \\\\ end"""', 'tab here "quoted" \\ end'),
        ('b"bytes"', "x.py"),
        ('"joined".strip()', "x.py"),
        ("import torch", "x.py"),
        ('"""never closed', "x.py"),
    ],
)
def test_titles(tmp_path: Path, text: str, title: str) -> None:
    assert only_case(write(tmp_path / "x.py", text)).title == title
