"""What each section says about its state: the shape, and the form of the values."""

from __future__ import annotations

from typing import NamedTuple

from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.declared_types import TypeForm, type_form


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

    @property
    def shape(self) -> tuple[str, bool, bool]:
        return self[:3]

    def __str__(self) -> str:
        return f"{'namespaced ' if self.namespaced else ''}{self.kind} state {'with' if self.ttl else 'without'} TTL"
