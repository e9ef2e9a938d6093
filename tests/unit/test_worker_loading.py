"""How a case comes into the process, and what counts as missing in the cell."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from harness.worker import loading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(known):
        del sys.modules[name]


@pytest.fixture
def case(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "case.py"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a torch that has next to nothing."""
    folder = tmp_path / "site-packages" / "torch"
    (folder / "_dynamo").mkdir(parents=True)
    (folder / "__init__.py").write_text("nothing = None\n", encoding="utf-8")
    (folder / "_dynamo" / "__init__.py").write_text(
        "def ask():\n    import torch\n    return torch.absent\n"
        "def fetch():\n    import torch.absent\n",
        encoding="utf-8",
    )
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


# --------------------------------------------------------------------------------------------- loading


def test_every_load_is_another_module(case: Callable[[str], str]) -> None:
    file = case("seen = []\ndef run():\n    seen.append(1)\n    return seen\n")
    first, second = loading.load_case(file), loading.load_case(file)
    assert first.run() == [1]
    assert second.run() == [1]
    assert first.run is not second.run


def test_the_footer_of_a_case_is_left_out(case: Callable[[str], str]) -> None:
    module = loading.load_case(case("name = __name__\nif __name__ == '__main__':\n    1 / 0\n"))
    assert module.name != "__main__"
    assert sys.modules[module.__name__] is module


def test_a_case_may_define_dataclasses(case: Callable[[str], str]) -> None:
    text = "from __future__ import annotations\nimport dataclasses\n"
    text += "@dataclasses.dataclass\nclass Point:\n    x: int = 3\n"
    assert loading.load_case(case(text)).Point().x == 3


def test_what_a_case_raises_comes_through(case: Callable[[str], str]) -> None:
    with pytest.raises(ZeroDivisionError):
        loading.load_case(case("1 / 0\n"))


@pytest.mark.parametrize("file", ["no-such-file.py", "script.txt"])
def test_what_is_no_python_file_is_refused(tmp_path: Path, file: str) -> None:
    with pytest.raises((ImportError, FileNotFoundError)):
        loading.load_case(str(tmp_path / file))


# --------------------------------------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("x = 1\n", 0),
        ("import sys\nsys.exit()\n", 0),
        ("import sys\nsys.exit(0)\n", 0),
        ("import sys\nsys.exit(3)\n", 3),
        ("import sys\nsys.exit(True)\n", 1),
        ("raise SystemExit('no luck')\n", 1),
    ],
)
def test_a_script_leaves_with_the_status_that_python_would_give(
    case: Callable[[str], str], text: str, status: int
) -> None:
    assert loading.run_script(case(text)) == status


def test_a_text_to_leave_with_goes_to_stderr(
    case: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    loading.run_script(case("raise SystemExit('no luck')\n"))
    assert capsys.readouterr().err == "no luck\n"


def test_a_script_runs_as_if_python_were_given_it(
    case: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "beside_it.py").write_text("here = True\n", encoding="utf-8")
    text = "import sys, beside_it\nprint(__name__, sys.argv == [__file__], beside_it.here)\n"
    assert loading.run_script(case(text)) == 0
    assert capsys.readouterr().out == "__main__ True True\n"


# ---------------------------------------------------------------------------------- what is missing here


def failure(file: str) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever a case raises
        loading.load_case(file)
    return caught.value


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("def f(:\n", "needs another Python: "),
        ("x = 1\n  y = 2\n", "needs another Python: unexpected indent (line 2)"),
        ("import torch.absent\n", "torch has no such module or name here: No module named"),
        ("from torch.absent import x\n", "torch has no such module or name here: No module named"),
        ("from torch import absent\n", "torch has no such module or name here: cannot import name"),
        ("import torch\ntorch.absent\n", "torch has no such name here: "),
        ("import torch\ntorch.absent.deeper()\n", "torch has no such name here: "),
        ("import torch._dynamo\ntorch._dynamo.absent\n", "torch has no such name here: "),
    ],
)
@pytest.mark.usefixtures("torch")
def test_what_the_case_asks_of_torch_or_python_and_does_not_get(
    case: Callable[[str], str], text: str, needs: str
) -> None:
    file = case(text)
    assert loading.missing_here(failure(file), file).startswith(needs)


@pytest.mark.parametrize(
    "text",
    [
        "import my_package\n",
        "from json import absent\n",
        "import json\njson.absent\n",
        "import torchvision\n",
        "import torch_geometric.nn\n",
        "import torch\ntorch.nothing.absent\n",
        "class A: pass\nA().torch\n",
        "compile('def f(:', 'another.py', 'exec')\n",
        "raise AttributeError('torch has no luck')\n",
        "raise ImportError('torch')\n",
        "1 / 0\n",
        "raise SystemExit(3)\n",
        # torch itself asks for what it has not: torch is broken, and lacks nothing of the case's.
        "import torch._dynamo\ntorch._dynamo.ask()\n",
        "import torch._dynamo\ntorch._dynamo.fetch()\n",
    ],
)
@pytest.mark.usefixtures("torch")
def test_what_else_goes_wrong_is_not_missing(case: Callable[[str], str], text: str) -> None:
    file = case(text)
    assert loading.missing_here(failure(file), file) == ""


def test_syntax_that_is_new_in_a_module_beside_the_case_is_not_the_cases(
    case: Callable[[str], str], tmp_path: Path
) -> None:
    (tmp_path / "beside_it.py").write_text("def f(:\n", encoding="utf-8")
    file = case("import beside_it\n")
    sys.path.insert(0, str(tmp_path))
    error = failure(file)
    assert isinstance(error, SyntaxError)
    assert loading.missing_here(error, file) == ""


def test_an_attribute_error_is_known_by_its_owner_too() -> None:
    error = AttributeError("something else", name="absent", obj=ModuleType("torch.fx"))
    assert loading.missing_here(error, "x.py").startswith("torch has no such name here")
    other = AttributeError("something else", name="absent", obj=ModuleType("json"))
    assert loading.missing_here(other, "x.py") == ""
