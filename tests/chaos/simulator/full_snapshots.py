"""Full snapshots without a fork: what the child would see is encoded at once, and written when its actor is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.checkpoint.snapshot.file import SnapshotRef

if TYPE_CHECKING:
    from tests.chaos.simulator.world import World


class SimulatedFullSnapshot:
    """Takes the place of `FullSnapshotChild`."""

    kind = "full"

    def __init__(self, name: str, ref: SnapshotRef) -> None:
        self.name = name
        self.names = (name,)
        self._ref: SnapshotRef | None = ref
        self._done = False

    @staticmethod
    def in_world(world: World) -> type[SimulatedFullSnapshot]:
        class InWorld(SimulatedFullSnapshot):
            @classmethod
            def start(cls, name: str, write: Callable[[], SnapshotRef]) -> SimulatedFullSnapshot:
                held_back: list[Callable[[], None]] = []
                for storage in world.storages.values():
                    storage.held_back = held_back
                try:
                    snapshot = cls(name, write())
                finally:
                    for storage in world.storages.values():
                        storage.held_back = None
                assert world.scheduler.current is not None
                group = world.scheduler.current.group
                world.scheduler.spawn(f"full {name}", group, lambda: snapshot._write(held_back))
                return snapshot

        return InWorld

    def _write(self, held_back: list[Callable[[], None]]) -> None:
        try:
            for write in held_back:
                write()
        except Exception:
            self._ref = None  # as the child: it logs, and deltas go on
        self._done = True

    def done(self) -> bool:
        return self._done

    def result(self) -> SnapshotRef | None:
        return self._ref

    def kill(self) -> None:
        self._done, self._ref = True, None
