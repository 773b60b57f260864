"""MATCH_RECOGNIZE: the pattern matcher of `headwater.cep` on rows, and a row of measures for each match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.common.errors import SqlError
from headwater.operators.base import OperatorContext, Output
from headwater.operators.cep.conditions import Condition, Test
from headwater.operators.cep.functions import PatternProcessFunction
from headwater.operators.cep.matcher import Match as Taken
from headwater.operators.cep.operator import CepOperator, CepSettings
from headwater.operators.cep.steps import Part, PatternSteps, Step
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, ColumnRef, Rex, SortKey, ref
from headwater.table.plan.match import Match, MatchDefinition, MatchValue
from headwater.table.plan.match_pattern import variables
from headwater.table.stream.changes import Changes, schema_of
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.stream.operators.base import ChangesOperator
from headwater.table.stream.row_aggregates import row_aggregate
from headwater.table.stream.rows import frozen_column, frozen_rows, thawed_column, thawed_rows
from headwater.table.stream.scalars import scalar
from headwater.table.types.arrow import to_arrow

Event = tuple[Any, ...]
"""A row in the form of `frozen_rows`, and behind it what was computed beforehand, many rows at once: which variables
it fits by itself, and what DEFINE aggregates. Each as a tuple of one value; None if one of the rows made it raise. Then
it is computed when it is asked for: no match may ever ask for that row.
"""


class MatchOperator(ChangesOperator):
    """Finds matches among the rows of each partition. Its input must be append-only, and its output is.

    `node` has its input cut off. Rows wait for the watermark, so that they are matched in the order of time; late ones
    are dropped and counted. With a processing-time column, rows are matched as they come.
    """

    def __init__(self, input: Sequence[Column], node: Match, *, event_time: bool = True, zone: str = "UTC") -> None:
        super().__init__(node.columns, zone)
        self._input = tuple(input)
        self._node = node
        self._event_time = event_time
        self._places = {column.id: place for place, column in enumerate(self._input)}

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        node = self._node
        self._row_alone = [each for each in node.definitions if _of_the_row_alone(each)]
        self._ahead = [(self._on_input(each), pa.bool_()) for each in self._row_alone]
        for value in (each for definition in node.definitions for each in definition.values):
            for argument in self._arguments(value):
                if argument not in self._ahead and not self._is_column(*argument):
                    self._ahead.append(argument)
        self._computed = [compiled(rex, self._input) for rex, _ in self._ahead]
        order = node.order_by[0].expression
        assert isinstance(order, ColumnRef)
        self._time = self._places[order.column.id]
        self._per_ms = {"us": 1000, "ns": 1_000_000}[to_arrow(order.column.type).unit]
        keys = [self._places[column.id] for column in node.partition_by]
        self._key_places = keys
        settings = CepSettings(self._event_time, _comparator(node.order_by[1:], self._places))
        self._told = _Tell(variables(node.pattern))
        self._inner = CepOperator(_KeyOf(keys), self._pattern(), self._told, settings)
        self._inner.setup(context, _Forward(self))

    def open(self) -> None:
        self._measures = [
            compiled(rex, [value.column for value in self._node.values]) for _, rex in self._node.measures
        ]
        self._inner.open()

    # -- rows in

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        for changes in values:
            if changes.weights is not None and (changes.weights < 0).any():
                raise SqlError("MATCH_RECOGNIZE got a row that is taken back: its input must be append-only")
            rows = changes.rows
            frame = self.frame(rows.num_rows)
            events = frozen_rows(rows)
            if self._ahead:
                ahead = zip(*(self._at_once(place, rows, frame) for place in range(len(self._ahead))), strict=True)
                events = [(*row, *values) for row, values in zip(events, ahead, strict=True)]
            if changes.weights is not None:
                events = [
                    event for event, weight in zip(events, changes.weights.tolist(), strict=True) for _ in range(weight)
                ]
            self._inner.process_batch(events, self._timestamps(events) if self._event_time else None)

    def _timestamps(self, events: Sequence[Event]) -> list[int | None]:
        per_ms, place = self._per_ms, self._time
        for event in events:
            if event[place] is None:
                raise SqlError(f"the time column '{self._input[place].name}' of MATCH_RECOGNIZE is NULL in a row")
        return [event[place] // per_ms for event in events]

    # -- time

    def process_watermark(self, watermark: int) -> None:
        self._inner.process_watermark(watermark)

    def process_time(self, now_ms: int) -> None:
        self._inner.process_time(now_ms)

    def process_idle(self, idle: bool) -> None:
        self._inner.process_idle(idle)

    def next_processing_timer(self) -> int | None:
        return self._inner.next_processing_timer()

    def end_epoch(self) -> None:
        self.flush()

    def prepare_commit(self) -> list[Any]:
        return self._inner.prepare_commit()

    def abort_epoch(self) -> None:
        self._told.take()
        self._inner.abort_epoch()

    def close(self) -> None:
        super().close()
        self._inner.close()

    # -- conditions

    def _pattern(self) -> PatternSteps:
        conditions = {each.variable: self._condition(each) for each in self._node.definitions}

        def defined(part: Part) -> Part:
            assert isinstance(part, Step)
            return replace(part, condition=conditions[part.name]) if part.name in conditions else part

        pattern = self._node.pattern
        return replace(pattern, parts=tuple(defined(part) for part in pattern.parts))

    def _condition(self, definition: MatchDefinition) -> Condition:
        if definition in self._row_alone:
            get = self._get_ahead(self._row_alone.index(definition))
            return Test(lambda event: get(event) is True, text=definition.variable)
        compute = scalar(definition.condition, [each.column for each in definition.values], lambda: self.frame(1))
        values = [self._quick_value(value) for value in definition.values]
        asked = [value.variable for value in definition.values]
        names = [name for name in variables(self._node.pattern) if None in asked or name in asked]

        def fits(event: Event, context: Any) -> bool:
            taken = {name: context.get_events_for_pattern(name) for name in names}
            if definition.variable in taken:
                taken[definition.variable].append(event)
            return compute([value(taken) for value in values]) is True

        return Test(fits, True, definition.variable)

    # -- what is computed beforehand

    def _at_once(self, place: int, rows: pa.RecordBatch, frame: Frame) -> list[tuple[Any] | None]:
        try:
            found = evaluated(self._computed[place], rows, frame)
        except Exception:
            return [None] * rows.num_rows
        return [(value,) for value in frozen_column(_typed(found, self._ahead[place][1]))]

    def _get_ahead(self, place: int) -> Callable[[Event], Any]:
        at, width = len(self._input) + place, len(self._input)
        compute = scalar(self._ahead[place][0], self._input, lambda: self.frame(1))

        def get(event: Event) -> Any:
            known = event[at]
            return compute(event[:width]) if known is None else known[0]

        return get

    def _arguments(self, value: MatchValue) -> list[tuple[Rex, pa.DataType]]:
        """What an aggregate needs of each row."""
        call = value.call
        if call is None:
            return []
        return list(zip(call.arguments, map(to_arrow, call.binding.arg_types), strict=True))

    def _is_column(self, rex: Rex, kind: pa.DataType) -> bool:
        return isinstance(rex, ColumnRef) and to_arrow(rex.type) == kind

    def _quick_value(self, value: MatchValue) -> Callable[[dict[str, list[Event]]], Any]:
        """A value of DEFINE, which is asked for one row at a time."""
        aggregate = None if value.call is None else row_aggregate(value.call)
        if aggregate is None:
            return lambda taken: self._value(value, taken)
        getters: list[Callable[[Event], Any]] = []
        for rex, kind in self._arguments(value):
            if isinstance(rex, ColumnRef) and self._is_column(rex, kind):
                getters.append(itemgetter(self._places[rex.column.id]))
            else:
                getters.append(self._get_ahead(self._ahead.index((rex, kind))))

        def compute(taken: dict[str, list[Event]]) -> Any:
            events = _rows_of(value, taken)
            return aggregate(len(events), [list(map(get, events)) for get in getters])

        return compute

    def _on_input(self, definition: MatchDefinition) -> Rex:
        """The condition over the row's own columns."""
        sources = {value.column.id: value.source for value in definition.values}

        def on_row(rex: Rex) -> Rex | None:
            source = sources.get(rex.column.id) if isinstance(rex, ColumnRef) else None
            return None if source is None else ref(source)

        return definition.condition.transform(on_row)

    # -- values of rows

    def _value(self, value: MatchValue, taken: dict[str, list[Event]]) -> Any:
        events = _rows_of(value, taken)
        if value.which == "ALL":
            return frozen_column(self._aggregated(value, [events]))[0]
        place = value.offset if value.which == "FIRST" else len(events) - 1 - value.offset
        assert value.source is not None
        return events[place][self._places[value.source.id]] if 0 <= place < len(events) else None

    def _aggregated(self, value: MatchValue, groups: Sequence[Sequence[Event]]) -> pa.Array:
        """An aggregate of the rows of each group."""
        call = value.call
        assert call is not None
        recipe = call.binding.function.recipe
        assert recipe is not None
        width = len(self._input)
        rows = thawed_rows([event[:width] for group in groups for event in group], schema_of(self._input))
        frame = self.frame(rows.num_rows)
        arguments = [evaluated(compiled(each, self._input), rows, frame) for each in call.arguments]
        kinds = [to_arrow(kind) for kind in call.binding.arg_types]
        arguments = [
            each if each.type == kind else each.cast(kind) for each, kind in zip(arguments, kinds, strict=True)
        ]
        offsets = np.zeros(len(groups) + 1, np.int64)
        np.cumsum([len(group) for group in groups], out=offsets[1:])
        return recipe.gather(arguments, offsets, call.binding)

    # -- matches out

    def flush(self) -> None:
        """Emit the measures of the matches that were found."""
        told = self._told.take()
        if not told:
            return
        matches = [match for match, _ in told]
        columns = []
        for value in self._node.values:
            if value.which == "ALL":
                columns.append(self._aggregated(value, [_rows_of(value, match) for match in matches]))
                continue
            if value.which == "TIME":
                found = [timestamp * self._per_ms for _, timestamp in told]
            else:
                found = [self._value(value, match) for match in matches]
            columns.append(thawed_column(found, to_arrow(value.column.type)))
        schema = schema_of([value.column for value in self._node.values])
        if columns:
            rows = pa.RecordBatch.from_arrays(
                [_typed(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
            )
        else:
            rows = pa.RecordBatch.from_struct_array(pa.array([{}] * len(matches), pa.struct([])))
        frame = self.frame(len(matches))
        first = [next(iter(match.values()))[0] for match in matches]
        arrays = [
            thawed_column([event[place] for event in first], to_arrow(self._input[place].type))
            for place in self._key_places
        ]
        arrays += [evaluated(measure, rows, frame) for measure in self._measures]
        out = [_typed(array, field.type) for array, field in zip(arrays, self.schema, strict=True)]
        self.emit(Changes(pa.RecordBatch.from_arrays(out, schema=self.schema)))


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _rows_of(value: MatchValue, taken: dict[str, list[Event]]) -> list[Event]:
    if value.variable is not None:
        return taken.get(value.variable, [])
    # Each variable has one place in the pattern, so its rows come before those of the next one.
    return [event for events in taken.values() for event in events]


def _of_the_row_alone(definition: MatchDefinition) -> bool:
    """Whether the condition looks at nothing but the row in question: then all rows are asked at once."""
    return all(
        value.which == "LAST" and value.offset == 0 and value.variable in (None, definition.variable)
        for value in definition.values
    )


_Told = tuple[dict[str, list[Event]], int]
"""A match, its variables in the order of the pattern; and when it was handed out."""


class _Tell(PatternProcessFunction):
    """Keeps the matches until they are told."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._matches: list[_Told] = []

    def process_match(self, match: Taken, ctx: PatternProcessFunction.Context) -> Iterator[Any] | None:
        self._matches.append(({name: match[name] for name in self._names if name in match}, ctx.timestamp()))
        return None

    def take(self) -> list[_Told]:
        found, self._matches = self._matches, []
        return found


class _Forward:
    """The inner operator's output: the measures of its matches leave before its watermark."""

    def __init__(self, operator: MatchOperator) -> None:
        self._operator = operator

    def emit(self, values: list[Any], timestamps: Any) -> None:
        """Nothing comes here: matches are kept by `_Tell`."""

    def emit_side(self, tag_id: str, values: list[Any], timestamps: Any) -> None:
        """Nothing comes here."""

    def emit_watermark(self, watermark: int) -> None:
        self._operator.flush()
        self._operator.output.emit_watermark(watermark)

    def emit_idle(self, idle: bool) -> None:
        self._operator.output.emit_idle(idle)


class _KeyOf:
    """The key of an event, as `KeyColumns` makes it of a row."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = tuple(places)

    def __call__(self, event: Event) -> Any:
        if len(self._places) == 1:
            return event[self._places[0]]
        return tuple(event[place] for place in self._places)


def _comparator(keys: Sequence[SortKey], places: dict[int, int]) -> Any:
    """Orders events of one time by the other columns of ORDER BY; None if there are none."""
    if not keys:
        return None
    order = [(places[key.expression.column.id], key.descending, key.nulls_first) for key in keys]  # type: ignore[attr-defined]

    def compare(one: Event, two: Event) -> int:
        for place, descending, nulls_first in order:
            left, right = one[place], two[place]
            if left == right:
                continue
            if left is None or right is None:
                return -1 if (left is None) == nulls_first else 1
            return -1 if (left < right) != descending else 1
        return 0

    return compare
