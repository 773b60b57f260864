"""A slot with one state, as queries see it; and the same behind a real query server."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.queryable_state.locations import SlotPlace
from headwater.queryable_state.slot_connections import SlotConnection
from headwater.runtime.slot.protocol import query_secret
from headwater.runtime.slot.query.server import Lease, QueryServer
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor
from tests.unit.runtime.slot_servers import SECRET

FOR_EVER = 1 << 62


class OneOperator:
    """A slot's runner with one keyed backend in it, and the slot itself: what queries need of both."""

    def __init__(self, entries: Mapping[Any, Any], epoch: int = 7) -> None:
        self.backend: Any = make_keyed_backend("heap", "op", 16, range(16))
        self.processing = False
        self.readable: Any = self
        self.state: Any = self.backend.get_state(ValueStateDescriptor("count"))
        self.backend.begin_epoch()
        for key, value in entries.items():
            self.backend.current_key = key
            self.state.update(value)
        self.backend.cut_epoch = epoch
        self.backend.commit_epoch(cut=True)
        self.backend.checkpoint_completed()

    def store(self, value: Any, key: Any) -> None:
        """In an epoch of its own."""
        self.backend.begin_epoch()
        self.backend.current_key = key
        self.state.update(value)
        self.backend.commit_epoch(cut=True)
        self.backend.checkpoint_completed()

    def backends(self) -> list[Any]:
        return [self.backend]


class Served:
    """Such a slot behind its sockets. Key n has the value 2n."""

    def __init__(self, directory: Path) -> None:
        self.slot = OneOperator({number: number * 2 for number in range(100)})
        self.lease = Lease()
        self.lease.until_ns = FOR_EVER
        self.place = SlotPlace(1, 0, "here", 0, str(directory / "query.sock"), "one", True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.place.path)
        listener.listen(64)
        tcp = socket.create_server(("127.0.0.1", 0))
        self.over_tcp = replace(self.place, host="127.0.0.1", port=tcp.getsockname()[1], path="")
        self.queries = QueryServer(self.slot, [listener, tcp], SECRET, "one", self.lease)  # type: ignore[arg-type]
        self.queries.start()

    def connect(self) -> SlotConnection:
        return SlotConnection(self.place, query_secret(SECRET), 5)
