"""What each section says about its state: the shape, and the form of the values."""

from __future__ import annotations

from typing import Any, NamedTuple

from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.declared_types import TypeForm, type_form
from headwater.state.snapshot.entries import TIMERS


class StateLayout(NamedTuple):
    """The shape of a state must never change under the same name; the form of its values may be migrated.

    Add new fields at the end, with a default: older snapshots lack them.
    """

    kind: str
    ttl: bool
    namespaced: bool
    version: int = 1
    """Version of the values. `StateDescriptor.migrate_with` raises it."""
    type: TypeForm = None
    """The declared type of a value, list element or map."""

    @classmethod
    def of(cls, descriptor: StateDescriptor, namespaced: bool = False) -> StateLayout:
        """Return the layout that `descriptor` asks for."""
        ttl = descriptor.get_ttl_config() is not None
        return cls(descriptor.kind, ttl, namespaced, descriptor.version, type_form(descriptor.type_info))

    @classmethod
    def stored(cls, parts: Any) -> StateLayout:
        """Return the layout that was stored as a plain tuple. Raises ValueError if that was none."""
        if isinstance(parts, tuple) and 3 <= len(parts) <= len(cls._fields):
            layout = cls(*parts)
            if isinstance(layout.kind, str) and isinstance(layout.version, int):
                return layout
        raise ValueError(f"it has the layout {parts!r}; expected {', '.join(cls._fields)}")

    @property
    def shape(self) -> tuple[str, bool, bool]:
        return self[:3]

    @property
    def key_width(self) -> int:
        """How many parts a key in the entries has; 1: it is the user's key itself (see `entries.py`)."""
        return 3 if self.kind == TIMERS else 2 if self.namespaced else 1

    def __str__(self) -> str:
        return f"{'namespaced ' if self.namespaced else ''}{self.kind} state {'with' if self.ttl else 'without'} TTL"
