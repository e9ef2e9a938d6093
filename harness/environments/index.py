"""Whether PyTorch's own index answers: asked at most once a run, and only when something is locked."""

from __future__ import annotations

import ssl
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMIT_S = 3.0


@dataclass(slots=True)
class IndexProbe:
    """Remembers which indexes answered. env: proxies and certificates are taken from it."""

    env: dict[str, str]
    limit_s: float = _LIMIT_S
    _answers: dict[str, bool] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def answers(self, index: str) -> bool:
        """Whether the index lists torch. Takes at most `limit_s` seconds, nothing when asked before."""
        with self._lock:
            if index not in self._answers:
                self._answers[index] = self._ask(index)
            return self._answers[index]

    def forget(self, index: str) -> None:
        """From here on the index counts as silent: it failed after it had answered."""
        with self._lock:
            self._answers[index] = False

    def _ask(self, index: str) -> bool:
        answered: list[bool] = []
        # In a thread, because resolving a name has no time limit of its own.
        asking = threading.Thread(
            target=lambda: answered.append(_lists_torch(index, self.env, self.limit_s)), daemon=True
        )
        asking.start()
        asking.join(timeout=self.limit_s)
        return answered == [True]


def _lists_torch(index: str, env: Mapping[str, str], limit_s: float) -> bool:
    url = f"{index.rstrip('/')}/torch/"
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "compile-matrix"})
        with _opener(url, env).open(request, timeout=limit_s) as reply:
            return b"torch-" in reply.read(65536)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except (OSError, ValueError):  # URLError and every socket and TLS error are OSErrors
        return False


def _opener(url: str, env: Mapping[str, str]) -> urllib.request.OpenerDirector:
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in env.items()
        if name.lower().endswith("_proxy") and value
    }
    if _is_direct(urlsplit(url).hostname or "", proxies.pop("no", "")):
        proxies = {}
    context = ssl.create_default_context(
        cafile=env.get("SSL_CERT_FILE") or None, capath=env.get("SSL_CERT_DIR") or None
    )
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context)
    )


def _is_direct(host: str, no_proxy: str) -> bool:
    names = [name.strip().lstrip(".").lower() for name in no_proxy.split(",")]
    return any(name and (name == "*" or f".{host}".endswith(f".{name}")) for name in names)
