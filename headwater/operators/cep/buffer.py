"""The events of the partial matches of one key, each once, however many partial matches share it.

An *entry* says that an event was taken for a step, and which entry came before. Partial matches with a common beginning
share its entries: they form a tree, and a partial match is known by its last entry. So a new event costs one entry, and
no copy of what came before. Entries and events are single entries of map state: an epoch writes those it made.
"""

from __future__ import annotations

from typing import Any

from headwater.state.api import MapState

NO_ENTRY = 0
"""Before the first entry. Ids begin at 1."""


class SharedBuffer:
    """Entries {id: (step, event id, entry before, references)} and events {id: event} of the current key.

    Who makes an entry holds one reference to it. An entry holds one to the entry before, and one to its event.
    """

    def __init__(self, entries: MapState[Any, Any], events: MapState[Any, Any]) -> None:
        self._entries: Any = entries
        self._events = events

    def add(self, entry: int, step: int, event_id: int, before: int) -> None:
        """Add an entry. The caller hands over one reference to `before`."""
        self._entries.put(entry, (step, event_id, before, 1))

    def add_event(self, event_id: int, event: Any, entries: int) -> None:
        """Keep an event that `entries` entries refer to."""
        self._events.put(event_id, event)
        if entries > 1:
            self._entries.put(-event_id, entries)

    def count(self, held: list[int], released: list[int]) -> None:
        """Hold one more reference to each entry in `held`, and give one to each in `released` back."""
        if not held:
            for entry in released:
                self._release(entry)
            return
        more: dict[int, int] = {}
        for entry in held:
            more[entry] = more.get(entry, 0) + 1
        for entry in released:
            more[entry] = more.get(entry, 0) - 1
        for entry, number in sorted(more.items(), key=_number, reverse=True):
            if entry != NO_ENTRY and number > 0:
                step, event_id, before, references = self._entries.get(entry)
                self._entries.put(entry, (step, event_id, before, references + number))
            for _ in range(-number):
                self._release(entry)

    def _release(self, entry: int) -> None:
        """Give one reference back. What nobody refers to any more is deleted."""
        entries = self._entries
        while entry != NO_ENTRY:
            step, event_id, before, references = entries.get(entry)
            if references > 1:
                entries.put(entry, (step, event_id, before, references - 1))
                return
            entries.remove(entry)
            sharing = entries.get(-event_id)
            if sharing is None:
                self._events.remove(event_id)
            elif sharing > 2:
                entries.put(-event_id, sharing - 1)
            else:
                entries.remove(-event_id)
            entry = before

    def clear(self) -> None:
        """Delete everything: no partial match is left."""
        self._entries.clear()
        self._events.clear()

    def path(self, entry: int) -> list[tuple[int, int]]:
        """Return (step, event id) from the first event to `entry`."""
        found: list[tuple[int, int]] = []
        get = self._entries.get
        while entry != NO_ENTRY:
            step, event_id, entry, _ = get(entry)
            found.append((step, event_id))
        found.reverse()
        return found

    def event(self, event_id: int) -> Any:
        """The event, which the caller may change."""
        return self._events.get(event_id)


def _number(pair: tuple[int, int]) -> int:
    return pair[1]
