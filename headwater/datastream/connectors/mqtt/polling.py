"""Waiting for sockets of paho with descriptors above 1,023, which its own call refuses: a driver may have that many."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

_ENDED = select.POLLERR | select.POLLHUP


class Polling:
    """Stands in for the module `select` within paho."""

    @staticmethod
    def select(
        readers: Sequence[Any], writers: Sequence[Any], _: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As `select.select`: the same results, TypeError for what is no socket, ValueError for a closed one."""
        poller = select.poll()
        for each in readers:
            poller.register(each, select.POLLIN)
        for each in writers:
            poller.register(each, select.POLLOUT | (select.POLLIN if each in readers else 0))
        ready = dict(poller.poll(None if timeout is None else max(0.0, timeout * 1000)))
        readable = [each for each in readers if ready.get(each.fileno(), 0) & (select.POLLIN | _ENDED)]
        writable = [each for each in writers if ready.get(each.fileno(), 0) & (select.POLLOUT | _ENDED)]
        return readable, writable, []


def let_poll(paho: Any) -> None:
    """Let the clients of `paho.mqtt.client` wait by polling."""
    paho.select = Polling
