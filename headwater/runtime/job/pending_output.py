"""The output of accepted epochs that waits for a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from headwater.runtime.epoch.messages import Ack, PartitionAck, SourceAck

Committables = dict[str, list[bytes]]
"""{sink uid: what its writers prepared, in order}"""


class PendingOutput:
    """Output since the last cut. Output of `eager` sinks need not wait."""

    def __init__(self, eager: Set[str] = frozenset()) -> None:
        self.eager = eager
        self._waiting: Committables = {}

    def collect(self, messages: Iterable[Ack]) -> Committables:
        """Add the output of an epoch. Return the part that need not wait for a checkpoint."""
        at_once: Committables = {}
        for message in messages:
            if isinstance(message, PartitionAck | SourceAck):
                for uid, items in message.outcome.committables.items():
                    (at_once if uid in self.eager else self._waiting).setdefault(uid, []).extend(items)
        return at_once

    def take(self) -> Committables:
        """Remove and return all: a checkpoint is cut, which commits it."""
        taken, self._waiting = self._waiting, {}
        return taken

    def hold(self, older: Mapping[str, list[bytes]]) -> None:
        """Put the output of a failed checkpoint before the output that waits for the next one."""
        for uid, items in older.items():
            self._waiting[uid] = [*items, *self._waiting.get(uid, [])]

    def drop(self) -> None:
        """The job goes back: its epochs produce the output again."""
        self._waiting = {}
