"""The guard guards: a unit test that reaches out fails, even one that swallows the refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

REACHING_OUT = {
    "connects": "socket.create_connection(('192.0.2.1', 80), timeout=1)",
    "looks_up": "socket.getaddrinfo('example.org', 443)",
    "sends": "with socket.socket(type=socket.SOCK_DGRAM) as s: s.sendto(b'', ('192.0.2.1', 9))",
    "starts": "subprocess.run([sys.executable, '-c', ''])",
    "forks": "os.fork() or os._exit(0)",
}


def run_guarded(pytester: pytest.Pytester, body: str, mark: str = "") -> pytest.RunResult:
    guard = Path(__file__).parents[1] / "conftest.py"
    pytester.makeconftest(guard.read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n    process: x\n    network: x\n")
    folder = pytester.mkdir("unit")
    text = f"import os, socket, subprocess, sys\nimport pytest\n{mark}\ndef test_it():\n{body}\n"
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    return pytester.runpytest_inprocess("-p", "no:cov")


@pytest.mark.parametrize("how", REACHING_OUT)
def test_reaching_out_fails_even_when_the_refusal_is_swallowed(
    pytester: pytest.Pytester, how: str
) -> None:
    body = f"    try:\n        {REACHING_OUT[how]}\n    except BaseException:\n        pass"
    run_guarded(pytester, body).assert_outcomes(passed=1, errors=1)


@pytest.mark.process
def test_a_marked_test_may_start_a_process(pytester: pytest.Pytester) -> None:
    run_guarded(pytester, f"    {REACHING_OUT['starts']}", "@pytest.mark.process").assert_outcomes(
        passed=1
    )


def test_loopback_is_allowed(pytester: pytest.Pytester) -> None:
    body = (
        "    server = socket.create_server(('127.0.0.1', 0))\n"
        "    client = socket.create_connection(server.getsockname())\n"
        "    client.close()\n"
        "    server.close()"
    )
    run_guarded(pytester, body).assert_outcomes(passed=1)
