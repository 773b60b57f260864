"""How the calls of an aggregation are brought up to date, all groups of an epoch at once.

Each call has accumulator columns. A call that *folds* adds the epoch's rows to them. If rows are taken back and its
accumulators cannot forget them (MIN, MAX), it keeps the values too, and folds those groups anew. A call that
*gathers* keeps all values; its accumulator is its result.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.ttl.config import StateTtlConfig
from headwater.table.functions.aggregation import AccumulatorColumn, AggregateRecipe, Fold, fold_groups
from headwater.table.functions.arguments import to_parameter
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import AggregateCall, Column, ColumnRef, Literal, Rex
from headwater.table.stream.changes import Weights
from headwater.table.stream.evaluate import Compiled, compiled, evaluated
from headwater.table.stream.numbering import Numbers, added_up, numbered
from headwater.table.stream.operators.aggregate_groups import GroupedChanges
from headwater.table.stream.operators.aggregate_state import CountedRows, OrderedRows
from headwater.table.stream.rows import frozen_column, thawed_rows
from headwater.table.types.arrow import to_arrow

_PER_EPOCH = 1 << 32


def meaning(rex: Rex, columns: Sequence[Column]) -> str:
    """An expression as text that stays the same when a query is planned again: columns by name, not by id."""
    if isinstance(rex, ColumnRef):
        alike = [column.id for column in columns if column.name == rex.column.name]
        number = f"#{alike.index(rex.column.id)}" if len(alike) > 1 else ""
        return f"{rex.column.name}{number}:{rex.type.sql()}"
    if isinstance(rex, Literal):
        return f"{rex.value!r}:{rex.type.sql()}"
    inner = ",".join(meaning(child, columns) for child in rex.children())
    return f"{getattr(rex, 'name', type(rex).__name__)}({inner})"


def call_meaning(call: AggregateCall, columns: Sequence[Column]) -> str:
    """A digest of a call, for the name of its state: calls with equal ones are one call."""
    condition = None if call.filter is None else meaning(call.filter, columns)
    parts = (call.name, call.distinct, [meaning(each, columns) for each in call.arguments], condition)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Kept:
    """A value that a group keeps: its type, and what it is before the first row, in the form of `frozen_column`."""

    kind: pa.DataType
    empty: Any

    @staticmethod
    def of(empty: pa.Array) -> Kept:
        return Kept(empty.type, frozen_column(empty)[0])


class Call(ABC):
    """One aggregate of an operator. Made when the operator opens."""

    recipe: AggregateRecipe

    def __init__(self, call: AggregateCall, inputs: Sequence[Column]) -> None:
        assert call.binding.function.recipe is not None, f"{call.name} is no aggregate"
        self.recipe = call.binding.function.recipe
        self.binding = call.binding
        self._call = call
        # What a function takes as a literal is in its binding.
        self._arguments: list[Compiled] = [compiled(each, inputs) for each in call.arguments]
        self._filter = None if call.filter is None else compiled(call.filter, inputs)
        self.meaning = call_meaning(call, inputs)
        kinds = [to_arrow(kind) for kind in call.binding.arg_types]
        self._schema = pa.schema([pa.field(str(place), kind) for place, kind in enumerate(kinds)])

    def values(self, epoch: GroupedChanges) -> tuple[list[pa.Array], Weights, Numbers]:
        """The arguments, weights and groups of the rows that count: those that pass the FILTER."""
        rows, weights, numbers = epoch.rows, epoch.weights, epoch.numbers
        passing = self.passing(rows, epoch.frame)
        if passing is not None:
            places = np.flatnonzero(passing.to_numpy(zero_copy_only=False))
            rows, weights, numbers = rows.take(pa.array(places, pa.int64())), weights[places], numbers[places]
        return self.arguments(rows, epoch.frame), weights, numbers

    def passing(self, rows: pa.RecordBatch, frame: Frame) -> pa.Array | None:
        """Which rows pass the FILTER; None if there is none."""
        return None if self._filter is None else evaluated(self._filter, rows, frame).fill_null(False)

    def arguments(self, rows: pa.RecordBatch, frame: Frame) -> list[pa.Array]:
        """The arguments, with the types that the aggregate takes."""
        binding = self.binding
        return [
            to_parameter(evaluated(argument, rows, frame), bound.type, kind, frame)
            for argument, bound, kind in zip(self._arguments, binding.arguments, binding.arg_types, strict=True)
        ]

    def changed_values(self, epoch: GroupedChanges) -> tuple[list[pa.Array], Weights, Numbers]:
        """As `values`, equal ones of a group added up, without those that come to nothing, in order of coming."""
        columns, weights, numbers = self.values(epoch)
        codes, firsts = numbered([pa.array(numbers), *columns], len(numbers))
        totals = added_up(weights, codes, len(firsts))
        kept = np.flatnonzero(totals)
        places = firsts[kept]
        return [column.take(pa.array(places)) for column in columns], totals[kept], numbers[places]

    def frozen(self, columns: Sequence[pa.Array], rows: int) -> list[tuple[Any, ...]]:
        return list(zip(*(frozen_column(column) for column in columns), strict=True)) if columns else [()] * rows

    kept: tuple[Kept, ...]
    """What a group keeps of this call: its accumulators."""

    def open(self, backend: KeyedStateBackend, ttl: StateTtlConfig | None) -> None:
        """Get the state of the call's values, if it keeps any."""

    @abstractmethod
    def after(self, epoch: GroupedChanges, before: list[pa.Array], context_epoch: int) -> list[pa.Array]:
        """The accumulators of the epoch's groups after it."""

    @abstractmethod
    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        """The results."""

    def clear(self, keys: Sequence[Any]) -> None:
        """Forget the values of these keys."""


class FoldedCall(Call):
    """Folds rows into accumulators. `keeps_values`: rows may be taken back that the accumulators cannot forget."""

    def __init__(self, call: AggregateCall, inputs: Sequence[Column], keeps_values: bool) -> None:
        super().__init__(call, inputs)
        assert self.recipe.accumulators is not None
        self._columns: tuple[AccumulatorColumn, ...] = self.recipe.accumulators(call.binding)
        self._keeps_values = keeps_values
        self._idempotent = all(column.fold is not Fold.ADD for column in self._columns)
        self._distinct = call.distinct and not self._idempotent  # the least value is that of different ones too

        kinds = [to_arrow(column.type) for column in self._columns]
        empty = [empty_accumulator(column.fold, kind) for column, kind in zip(self._columns, kinds, strict=True)]
        self.kept = tuple(Kept.of(pa.repeat(each, 1)) for each in empty)

    def open(self, backend: KeyedStateBackend, ttl: StateTtlConfig | None) -> None:
        if self._distinct or self._keeps_values:
            self._values = CountedRows(backend, f"values-{self.meaning}", ttl)

    def after(self, epoch: GroupedChanges, before: list[pa.Array], context_epoch: int) -> list[pa.Array]:
        if not (self._distinct or self._keeps_values):
            return self._added(before, *self.values(epoch))
        columns, weights, numbers = self.changed_values(epoch)
        if self._distinct:
            # A NULL contributes nothing to an aggregate that folds.
            known = np.ones(len(numbers), np.bool_)
            for column in columns:
                known &= column.is_valid().to_numpy(zero_copy_only=False)
            kept = np.flatnonzero(known)
            columns = [column.take(pa.array(kept)) for column in columns]
            weights, numbers = weights[kept], numbers[kept]
        changes = self._applied(epoch, columns, weights, numbers)
        if self._distinct:
            weights = changes
        if not self._keeps_values:
            return self._added(before, columns, weights, numbers)
        lost = np.zeros(len(epoch.keys), np.bool_)
        lost[numbers[weights < 0]] = True
        come = np.flatnonzero((weights > 0) & ~lost[numbers])
        added = self._added(before, [each.take(pa.array(come)) for each in columns], weights[come], numbers[come])
        return self._folded_anew(epoch, np.flatnonzero(lost), added)

    def _applied(self, epoch: GroupedChanges, columns: list[pa.Array], weights: Weights, numbers: Numbers) -> Weights:
        """Count the values; return for each whether it comes (1), goes (-1) or neither (0)."""
        keys = [epoch.keys[number] for number in numbers.tolist()]
        return self._values.apply(keys, self.frozen(columns, len(numbers)), weights)

    def _added(
        self, before: list[pa.Array], columns: list[pa.Array], weights: Weights, numbers: Numbers
    ) -> list[pa.Array]:
        return [
            combined(old, _folded(value, numbers, len(old), column.fold), column.fold)
            for old, value, column in zip(before, self._contributions(columns, weights), self._columns, strict=True)
        ]

    def contributions_of(self, rows: pa.RecordBatch, frame: Frame) -> list[tuple[pa.Array, Fold]]:
        """What each row adds to each accumulator; nothing if it does not pass the FILTER."""
        found = self._contributions(self.arguments(rows, frame), np.ones(rows.num_rows, np.int64))
        passing = self.passing(rows, frame)
        if passing is not None:
            found = tuple(
                pc.if_else(passing, value, empty_accumulator(column.fold, value.type))
                for value, column in zip(found, self._columns, strict=True)
            )
        return [
            (value.cast(to_arrow(column.type)), column.fold) for value, column in zip(found, self._columns, strict=True)
        ]

    def _contributions(self, columns: list[pa.Array], weights: Weights) -> tuple[pa.Array, ...]:
        assert self.recipe.contribute is not None
        return self.recipe.contribute(columns, pa.array(weights), self.binding)

    def _folded_anew(self, epoch: GroupedChanges, lost: Numbers, added: list[pa.Array]) -> list[pa.Array]:
        if not len(lost):
            return added
        held = [self._values.rows(epoch.keys[number], distinct=self._idempotent) for number in lost.tolist()]
        values = thawed_rows([row for rows in held for row in rows], self._schema)
        numbers = np.repeat(np.arange(len(held)), [len(rows) for rows in held])
        contributions = self._contributions(list(values.columns), np.ones(len(numbers), np.int64))
        order = np.arange(len(epoch.keys))
        order[lost] = len(order) + np.arange(len(lost))
        return [
            pa.concat_arrays([old, fold_groups(value, numbers, len(held), column.fold)]).take(pa.array(order))
            for old, value, column in zip(added, contributions, self._columns, strict=True)
        ]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        assert self.recipe.finish is not None
        return self.recipe.finish(accumulators, self.binding)

    def clear(self, keys: Sequence[Any]) -> None:
        if self._distinct or self._keeps_values:
            self._values.clear(keys)


class GatheredCall(Call):
    """Recomputes a group from all its values whenever they change."""

    def __init__(self, call: AggregateCall, inputs: Sequence[Column]) -> None:
        super().__init__(call, inputs)
        nothing = [pa.array([], field.type) for field in self._schema]
        self.kept = (Kept.of(self.recipe.gather(nothing, np.zeros(2, np.int64), self.binding)),)

    def open(self, backend: KeyedStateBackend, ttl: StateTtlConfig | None) -> None:
        shape = OrderedRows if self.recipe.ordered else CountedRows
        self._values = shape(backend, f"values-{self.meaning}", ttl)

    def after(self, epoch: GroupedChanges, before: list[pa.Array], context_epoch: int) -> list[pa.Array]:
        keys = epoch.keys
        if self.recipe.ordered and bool((epoch.weights > 0).all()):
            columns, weights, numbers = self.values(epoch)  # equal values have places of their own
        else:
            columns, weights, numbers = self.changed_values(epoch)
        rows = self.frozen(columns, len(numbers))
        of_rows = [keys[number] for number in numbers.tolist()]
        if isinstance(self._values, OrderedRows):
            for place, change in enumerate(zip(of_rows, rows, weights.tolist(), strict=True)):
                self._values.apply(*change, context_epoch * _PER_EPOCH + place)
        else:
            self._values.apply(of_rows, rows, weights)
        touched = np.unique(numbers)
        if not len(touched):
            return before
        held = [self._values.rows(keys[number], self._call.distinct) for number in touched.tolist()]
        offsets = np.zeros(len(held) + 1, np.int64)
        np.cumsum([len(each) for each in held], out=offsets[1:])
        values = thawed_rows([row for each in held for row in each], self._schema)
        found = self.recipe.gather(list(values.columns), offsets, self.binding)
        order = np.arange(len(keys))
        order[touched] = len(keys) + np.arange(len(touched))
        return [pa.concat_arrays([before[0], found]).take(pa.array(order))]

    def finish(self, accumulators: list[pa.Array]) -> pa.Array:
        return accumulators[0]

    def clear(self, keys: Sequence[Any]) -> None:
        self._values.clear(keys)


def call_of(call: AggregateCall, inputs: Sequence[Column], append_only: bool) -> Call:
    """How that call is computed on an input that does, or does not, take rows back."""
    recipe = call.binding.function.recipe
    assert recipe is not None, f"{call.name} is no aggregate"
    if not recipe.folds:
        return GatheredCall(call, inputs)
    return FoldedCall(call, inputs, keeps_values=not (append_only or recipe.retractable(call.binding)))


def _folded(values: pa.Array, numbers: Numbers, count: int, fold: Fold) -> pa.Array:
    """As `fold_groups`. Sums of integers, which wrap around, are the most common, and numpy's are the fastest."""
    if fold is Fold.ADD and values.type == pa.int64() and not values.null_count:
        return pa.array(added_up(values.to_numpy(), numbers, count))
    return fold_groups(values, numbers, count, fold)


def empty_accumulator(fold: Fold, kind: pa.DataType) -> pa.Scalar:
    if fold is not Fold.ADD:
        return pa.scalar(None, kind)
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)


def combined(one: pa.Array, other: pa.Array, fold: Fold) -> pa.Array:
    """Two columns of accumulators, folded row by row."""
    if fold is Fold.ADD and not pa.types.is_decimal(one.type):
        return pc.add(one, other)
    numbers = np.tile(np.arange(len(one)), 2)
    return fold_groups(pa.concat_arrays([one, other]), numbers, len(one), fold)
