"""The form in which the values of one state are stored, from loading to the first checkpoint of the new form.

    loaded(...)               for each section that is restored
    asked_for(descriptor)     the program wants the state: what its values must go through, if anything
    delta_is_whole()          True until a complete checkpoint has the converted values: a delta must have all
    checkpoint_completed()    or checkpoint_failed()

A converted state is written whole, in deltas too: so in a chain of snapshots what is of an older form is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.state.descriptors import StateDescriptor
from headwater.state.evolution.changed_classes import ClassChange
from headwater.state.evolution.migration import Convert, refuse_obstacles, value_conversion
from headwater.state.evolution.schema import ClassSchema
from headwater.state.snapshot.layout import StateLayout


class StoredForm:
    """One state's; kept by its backend beside the values."""

    __slots__ = ("_changes", "_converted", "_in_flight", "layout")

    def __init__(self, layout: StateLayout) -> None:
        self.layout = layout
        """Of what is stored now."""
        self._changes: dict[ClassSchema, ClassChange] = {}
        self._converted = False
        self._in_flight = False

    def loaded(self, layout: StateLayout, changes: Iterable[ClassChange]) -> None:
        """A section with values of this form was loaded; `changes` are those of the classes that were met in it."""
        if layout.version >= self.layout.version:  # older ones of the chain are overwritten, see above
            self.layout = layout
        self._changes.update((change.stored, change) for change in changes)

    def asked_for(self, uid: str, descriptor: StateDescriptor, layout: StateLayout) -> Convert | None:
        """What each value must be converted with now; None if they fit. `StateMigrationError` if there is no way.

        `layout` is what `descriptor` asks for; its shape is that of the stored one.
        """
        convert = value_conversion(uid, descriptor, self.layout, self._changes.values())
        self._converted = self._converted or convert is not None
        self.layout = layout
        self._changes.clear()
        return convert

    def asked_for_without_descriptor(self, uid: str, name: str) -> None:
        """For state that has none (windows' contents), hence no migration functions."""
        refuse_obstacles(uid, name, self._changes.values())

    @property
    def converted(self) -> bool:
        """Whether the values are of a newer form than those in the snapshots."""
        return self._converted

    def delta_is_whole(self) -> bool:
        """Called when a checkpoint is cut: whether its delta must contain all entries, changed or not."""
        self._in_flight = self._converted
        return self._converted

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable."""
        if self._in_flight:
            self._converted = self._in_flight = False

    def checkpoint_failed(self) -> None:
        """The checkpoint in flight will never be."""
        self._in_flight = False
