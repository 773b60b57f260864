"""A Spark master on another host: whether it can be reached, before Spark waits a minute for it without a word."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from headwater.common.errors import ConfigurationError

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 10.0
"""A master that is just being started gets so much time."""
TELL_SECONDS = 10.0
"""How often one is told that Spark still starts."""
_CONNECT_SECONDS = 5
_KUBERNETES_PORT = 443


def require_master(master: str) -> None:
    """Return when one of the hosts that `master` names takes a connection. Masters that name no host are not checked.

    Raises:
        ConfigurationError: none does. A warning comes at once, the error after `PATIENCE_SECONDS`.
    """
    addresses = _addresses(master)
    deadline = time.monotonic() + PATIENCE_SECONDS
    told = False
    while addresses:
        problems = [problem for address in addresses if (problem := _problem(*address))]
        if len(problems) < len(addresses):
            return
        reason = f"Spark master {master} cannot be reached: {'; '.join(problems)}"
        if time.monotonic() >= deadline:
            raise ConfigurationError(f"{reason}. Is it started, and are headwater.master (-m) and the port right?")
        if not told:
            log.warning("%s; trying for %d s", reason, PATIENCE_SECONDS)
            told = True
        time.sleep(min(1.0, max(deadline - time.monotonic(), 0)))


@contextlib.contextmanager
def told_while_waiting(master: str) -> Iterator[None]:
    """While the block lasts, say from time to time what is waited for, if it is not on this host."""
    if master.startswith("local"):
        yield
        return
    over = threading.Event()
    started = time.monotonic()

    def tell() -> None:
        while not over.wait(TELL_SECONDS):
            log.warning("waiting for Spark on %s, since %d s", master, time.monotonic() - started)

    threading.Thread(target=tell, name="waiting-for-spark", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _addresses(master: str) -> list[tuple[str, int]]:
    """The hosts and ports of `spark://host:port,host:port` and `k8s://https://host:port`."""
    kind, _, rest = master.partition("://")
    if kind not in ("spark", "k8s"):
        return []
    found = []
    for part in rest.split(","):
        url = urlsplit(part if "://" in part else f"//{part}")
        port = url.port or (_KUBERNETES_PORT if kind == "k8s" else None)
        if url.hostname and port:
            found.append((url.hostname, port))
    return found


def _problem(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError as error:
        return f"{host}:{port}: {error.strerror or error}"
    return None
