"""A cell while its probes run: its server, and the next one when a case has killed the last."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from harness.cell_server import CellServer, ServerDied, ServerFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from harness.plan import Probe


class LiveCell:
    """Probes may be handed to it from several threads.

    python, env: the cell's. scratch: a folder of its own. fork: whether a warm server is wanted.
    memory_bytes: the bound of one probe.
    """

    def __init__(
        self, python: Path, env: Mapping[str, str], scratch: Path, *, fork: bool, memory_bytes: int
    ) -> None:
        self._python = python
        self._env = env
        self._scratch = scratch
        self._fork = fork
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._server: CellServer | None = None
        self._starts = 0
        self._is_ended = False
        self._failure: ServerFailed | None = None
        self.has_come_up = False  # whether a server of this cell ever took a probe

    def probe(self, probe: Probe, isolation: str = "") -> dict[str, Any]:
        """What the worker saw. isolation: overrides the plan's.

        Raises: ServerDied; ServerFailed where no server comes up; ServerDied when the cell was ended.
        """
        request = {
            "case": probe.case.id,
            "file": str(probe.case.file.absolute()),
            "kind": probe.case.kind,
            "path": probe.path,
            "device": probe.cell.device.value,
            "deadline_s": probe.deadline_s,
            "memory_bytes": self._memory_bytes,
            "isolation": isolation or probe.isolation,
        }
        try:
            seen = self._living_server().probe(request)
        except ServerFailed as failure:
            self._failure = failure  # the next one would fail too, each after a while
            raise
        except ServerDied:
            self.has_come_up = True
            raise
        self.has_come_up = True
        return seen

    def end(self) -> None:
        """Ends the server with all that runs in it; none is started after this."""
        with self._lock:
            self._is_ended = True
            if self._server is not None:
                self._server.close()

    def _living_server(self) -> CellServer:
        with self._lock:
            if self._server is not None and self._server.is_dead:
                self._server.close()
                self._server = None
            if self._failure is not None:
                raise self._failure
            if self._is_ended:
                ended_by, log = "", "the cell was ended"
                raise ServerDied(ended_by, log)
            if self._server is None:
                self._starts += 1
                folder = self._scratch / f"server-{self._starts}"
                self._server = CellServer(self._python, self._env, folder, fork=self._fork)
            return self._server
