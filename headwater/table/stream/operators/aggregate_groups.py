"""Rows by group, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.table.functions.frame import Frame
from headwater.table.stream.changes import Changes, Weights
from headwater.table.stream.keys import KeyColumns
from headwater.table.stream.numbering import Numbers, added_up, numbered


class GroupedChanges:
    """The changes of an epoch by group. Group n has the key `keys[n]`; its first row is `firsts[n]`."""

    def __init__(self, changes: Changes, numbers: Numbers, firsts: Numbers, keys: Sequence[Any], frame: Frame) -> None:
        self.rows = changes.rows
        self.weights: Weights = changes.weight_array()
        self.numbers = numbers
        self.firsts = firsts
        self.keys = keys
        self.frame = frame

    @staticmethod
    def of(changes: Changes, by: KeyColumns, frame: Frame) -> GroupedChanges:
        columns = [changes.rows.column(place) for place in by.places]
        numbers, firsts = numbered(columns, len(changes))
        return GroupedChanges(changes, numbers, firsts, by.batch(changes.take(firsts)), frame)

    def totals(self) -> Numbers:
        """How many rows each group gains, on balance."""
        return added_up(self.weights, self.numbers, len(self.keys))
