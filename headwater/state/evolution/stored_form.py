"""The form of one state's values, from the restore to the first checkpoint that contains the new form.

    loaded(...)               for each restored section
    asked_for(descriptor)     the program asks for the state: returns the conversion of its values, if any
    delta_is_whole()          True until a complete checkpoint has the converted values: a delta must have all
    checkpoint_completed()    or checkpoint_failed()

A converted state is written whole, even in a delta: a newer snapshot of a chain overwrites all values of an older form.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.changed_classes import ClassChange
from headwater.state.evolution.migration import Convert, refuse_obstacles, value_conversion
from headwater.state.evolution.schema import ClassSchema
from headwater.state.snapshot.layout import StateLayout


class StoredForm:
    """The form of one state's values. The backend keeps it beside the values."""

    __slots__ = ("_changes", "_converted", "_in_flight", "layout")

    def __init__(self, layout: StateLayout) -> None:
        self.layout = layout
        """The layout of the values as they are now."""
        self._changes: dict[ClassSchema, ClassChange] = {}
        self._converted = False
        self._in_flight = False

    def loaded(self, layout: StateLayout, changes: Iterable[ClassChange]) -> None:
        """A section with this layout was loaded. `changes` are the changed classes in it."""
        if layout.version >= self.layout.version:  # newer sections overwrite older forms, see above
            self.layout = layout
        self._changes.update((change.stored, change) for change in changes)

    def asked_for(self, uid: str, descriptor: StateDescriptor, layout: StateLayout) -> Convert | None:
        """Return the conversion that each value needs now, or None. Raises `StateMigrationError` if there is no way.

        `layout` is what `descriptor` asks for. It must have the shape of the stored one.
        """
        convert = value_conversion(uid, descriptor, self.layout, self._changes.values())
        self._converted = self._converted or convert is not None
        self.layout = layout
        self._changes.clear()
        return convert

    def asked_for_without_descriptor(self, uid: str, name: str) -> None:
        """Raise `StateMigrationError` if values cannot be read. For state without migrations (contents of windows)."""
        refuse_obstacles(uid, name, self._changes.values())

    @property
    def converted(self) -> bool:
        """True if the values have a newer form than those in the snapshots."""
        return self._converted

    def delta_is_whole(self) -> bool:
        """Return True if the delta must contain all entries, changed or not. Called when a checkpoint is cut."""
        self._in_flight = self._converted
        return self._converted

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable."""
        if self._in_flight:
            self._converted = self._in_flight = False

    def checkpoint_failed(self) -> None:
        """The checkpoint in flight failed."""
        self._in_flight = False
