"""sum, min, max, min_by and max_by: reduce functions for one field of a record."""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import Enum
from typing import Any

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.types import Row
from headwater.operators.functions.plain import ReduceFunction
from headwater.operators.reduce import KeyedReduceOperator


class AggregationKind(Enum):
    """How two records of one key are combined."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MIN_BY = "min_by"
    MAX_BY = "max_by"


class FieldAggregation(ReduceFunction):
    """Aggregates one field: by position in a tuple, list or Row, or by name in a Row, named tuple or dict.

    SUM, MIN and MAX keep the first record and replace the field; MIN_BY and MAX_BY keep the whole record that has the
    extreme value, the first of equals. A record that is not a collection counts as its only field, at position 0.
    Records are never changed in place.
    """

    def __init__(self, kind: AggregationKind, field: int | str) -> None:
        self.kind = kind
        self.field = field
        self._combine = _COMBINE[kind]
        self._keeps_record = kind in (AggregationKind.MIN_BY, AggregationKind.MAX_BY)

    def reduce(self, value1: Any, value2: Any) -> Any:
        if value1.__class__ is tuple and value2.__class__ is tuple:
            try:
                return self._reduce_tuples(value1, value2)
            except (IndexError, TypeError):
                pass  # the slow path below raises a better error
        if not isinstance(value2, (tuple, list, Row, dict)):
            return self._combine(value1, self.field_of(value2))
        field1, field2 = self.field_of(value1), self.field_of(value2)
        if self.kind is AggregationKind.MIN_BY:
            return value2 if field2 < field1 else value1
        if self.kind is AggregationKind.MAX_BY:
            return value2 if field2 > field1 else value1
        return self._replaced(value1, self._combine(field1, field2))

    def _reduce_tuples(self, value1: tuple[Any, ...], value2: tuple[Any, ...]) -> tuple[Any, ...]:
        """A fast path for tuples, by far the most frequent records."""
        field: Any = self.field
        kept = self._combine(value1[field], value2[field])
        if self._keeps_record:
            return value2 if kept is not value1[field] else value1
        fields = list(value1)
        fields[field] = kept
        return tuple(fields)

    def field_of(self, record: Any) -> Any:
        """The field of `record`; `TypeMismatchError` if it has no such field."""
        if not isinstance(record, (tuple, list, Row, dict)):
            if self.field != 0:
                raise TypeMismatchError(
                    f"{self.kind.value}({self.field!r}): the record {short_repr(record)} has no fields; expected a "
                    "tuple, list, Row or dict, or position 0, which means the record itself"
                )
            return record
        field: Any = self.field
        try:
            return getattr(record, field) if isinstance(field, str) and isinstance(record, tuple) else record[field]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise TypeMismatchError(
                f"{self.kind.value}({self.field!r}): the record {short_repr(record)} has no such field"
            ) from None

    def _replaced(self, record: Any, new: Any) -> Any:
        field: Any = self.field
        if isinstance(record, tuple):
            names = getattr(record, "_fields", None)
            if names is not None:
                return record._replace(**{field if isinstance(field, str) else names[field]: new})  # type: ignore[attr-defined]
            fields = list(record)
            fields[field] = new
            return tuple(fields)
        changed = copy.copy(record)
        changed[field] = new
        return changed


class KeyedAggregateOperator(KeyedReduceOperator):
    """A rolling aggregation of one field per key."""

    def __init__(self, key_selector: Any, kind: AggregationKind | str, field: int | str = 0) -> None:
        self._aggregation = FieldAggregation(AggregationKind(kind), field)
        super().__init__(key_selector, self._aggregation)

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        try:
            self._aggregation.field_of(values[0])  # keys that come once never get to reduce(), which would tell
        except TypeMismatchError as error:
            raise self.user_error(error, values[0]) from error
        super().process_batch(values, timestamps, input_index)


def _lesser(value1: Any, value2: Any) -> Any:
    return value2 if value2 < value1 else value1


def _greater(value1: Any, value2: Any) -> Any:
    return value2 if value2 > value1 else value1


def _plus(value1: Any, value2: Any) -> Any:
    return value1 + value2


_COMBINE: dict[AggregationKind, Callable[[Any, Any], Any]] = {
    AggregationKind.SUM: _plus,
    AggregationKind.MIN: _lesser,
    AggregationKind.MAX: _greater,
    AggregationKind.MIN_BY: _lesser,
    AggregationKind.MAX_BY: _greater,
}
