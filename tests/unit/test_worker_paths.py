"""The names of the compile paths, and what each passes on."""

from __future__ import annotations

import pytest

from harness.worker.paths import MAIN_PATHS, PATHS, needs_inductor


def test_the_paths_and_their_backends() -> None:
    assert {path: arguments.get("backend") for path, arguments in PATHS.items()} == {
        "dynamo": "eager",
        "aot": "aot_eager",
        "inductor": "inductor",
        "inductor-dynamic": "inductor",
        "inductor-cudagraphs": "inductor",
        "jit-trace": None,
        "script": None,
    }
    assert PATHS["inductor-dynamic"]["dynamic"] is True
    assert PATHS["inductor-cudagraphs"]["mode"] == "reduce-overhead"
    assert set(MAIN_PATHS) <= set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_inductor_is_needed_where_it_is_the_backend(path: str) -> None:
    assert needs_inductor(path) == path.startswith("inductor")
