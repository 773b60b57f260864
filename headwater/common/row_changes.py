"""Rows that take something back, and sinks that cannot: they would write a deletion as one more row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.common.errors import SerializationError, short_repr
from headwater.common.types import Row, RowKind

_TAKES_BACK: Final = frozenset((RowKind.UPDATE_BEFORE, RowKind.DELETE))


def is_insert_only(serializer: Any) -> bool:
    """Whether a schema, encoder or writer factory, or a bound method of one, writes rows the same whatever their kind.

    It says so by an attribute `insert_only`. Functions of users do not: they may look at the kind.
    """
    return bool(getattr(getattr(serializer, "__self__", serializer), "insert_only", False))


def refuse_retractions(values: Sequence[Any], sink: object) -> None:
    """Raise SerializationError if one of the values is a row of the kind UPDATE_BEFORE or DELETE."""
    if Row not in set(map(type, values)):
        return
    for value in values:
        if type(value) is Row and value.get_row_kind() in _TAKES_BACK:
            raise SerializationError(
                f"{sink}: expected rows to insert, found one of the kind {value.get_row_kind().name}: "
                f"{short_repr(value)}. This sink writes every row as a new one, and its input is a table that changes "
                "(change data, to_changelog_stream, GROUP BY, outer join). Write it with what knows "
                "kinds (tables of jdbc, redis and upsert-kafka in SQL, the format debezium-json); or filter by "
                "row.get_row_kind(); or call row.set_row_kind(RowKind.INSERT) to keep each change as a row"
            )
