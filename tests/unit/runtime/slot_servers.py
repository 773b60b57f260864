"""Real slot servers in threads of the test, each with a slot that does what the test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.common.ids import Place
from headwater.runtime.epoch.messages import Attempt, Base, BeginEpoch, EpochOutcome, PartitionAck, SlotAddress
from headwater.runtime.epoch.steps import Step
from headwater.runtime.slot.connection import shut_down
from headwater.runtime.slot.process import SlotConfig, SlotServer
from headwater.runtime.slot.starter import SlotLaunch, local_host
from headwater.runtime.stage.edges import Emit

SECRET = b"s" * 32


class ScriptedSlot:
    """Stands for a `Slot`: echoes its chunks, unless `script` says something else. Remembers what it was told."""

    plan: Any = None

    def __init__(self, address: SlotAddress) -> None:
        self.address = address
        self.completed: list[str] = []
        self.aborts = 0
        self.script: Callable[[Emit, Iterable[Step]], None] = echo

    def run(
        self, begin: BeginEpoch, emit: Emit, steps: Iterable[Step], output_ended: Callable[[], None]
    ) -> PartitionAck:
        self.script(emit, steps)
        output_ended()
        return PartitionAck(self.address.place, EpochOutcome(), address=self.address)

    def checkpoint_completed(self, token: str) -> None:
        self.completed.append(token)

    def abort(self) -> None:
        self.aborts += 1


def echo(emit: Emit, steps: Iterable[Step]) -> None:
    for step in steps:
        emit(step.node, bytes(step.value))


class SlotServers:
    """The slots of one job, with the connections that they accepted."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.launch = SlotLaunch(
            "job", "0123456789abcdef", SECRET, b"", (1, 2), b"", None, listen_tcp=False, health_seconds=5
        )
        self.slots: dict[Place, ScriptedSlot] = {}
        self._accepted: list[tuple[Place, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._servers: list[SlotServer] = []

    def start(self, place: Place, incarnation: str = "one") -> ScriptedSlot:
        path = str(self._directory / f"{place.stage}-{place.partition}-{incarnation}.sock")
        address = SlotAddress(*place, local_host(), 0, path, 0, incarnation)
        server = SlotServer(SlotConfig(address, False, SECRET, "job", b"", b"", None, 1))
        slot = self.slots[place] = ScriptedSlot(server.address)
        self._servers.append(server)
        for target, argument in ((self._accept, server), (lambda each: each.serve(slot), server)):
            self._threads.append(threading.Thread(target=target, args=(argument,)))
            self._threads[-1].start()
        return slot

    def _accept(self, server: SlotServer) -> None:
        listener = server._listeners[0]
        listener.settimeout(0.02)
        while not self._stopped.is_set():
            try:
                sock, _ = listener.accept()
            except TimeoutError:
                continue
            self._accepted.append((server.address.place, sock))
            threading.Thread(target=server._read_from, args=(sock,), daemon=True).start()

    @property
    def connections(self) -> int:
        """How many connections the slots have accepted so far."""
        return len(self._accepted)

    def close_connections(self, *places: Place) -> None:
        """Close the ends of all connections that these slots have accepted."""
        for place, sock in list(self._accepted):  # a relay that notices may come again at once
            if place in places and sock.fileno() >= 0:
                sock.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        for server in self._servers:
            shut_down(server.address, SECRET)
        self._stopped.set()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "a slot did not end"
        for server in self._servers:
            server._listeners[0].close()


@contextmanager
def slot_servers(directory: Path, *places: Place) -> Iterator[SlotServers]:
    """Slots of these places; all threads are gone afterwards."""
    servers = SlotServers(directory)
    try:
        for place in places:
            servers.start(place)
        yield servers
    finally:
        servers.stop()


def begin(number: int, epoch: int = 0) -> BeginEpoch:
    return BeginEpoch(Attempt(1, epoch, number), Base(-1, "start", -1, "start"), 0, {}, [], checkpointing=False)
