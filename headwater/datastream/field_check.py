"""Refuses a field that the records do not have, where the program names it, if the records are known there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.type_system.information import ExternalTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from headwater.datastream.connectors.collection import CollectionSource
from headwater.graph.transformation import PartitionTransformation, SourceTransformation, Transformation


def check_field(method: str, field: int | str, upstream: Transformation, read: Callable[[Any], Any]) -> None:
    """Raise if records of `upstream` lack `field`: by their declared type, or by the first item of a collection.

    `read` is what the job will do to read the field of a record.
    """
    if upstream.output_type is not None:
        _check_declared(f"{method}({field!r})", field, upstream.output_type)
        return
    for record in _first_item(upstream):
        try:
            read(record)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise TypeMismatchError(f"{method}({field!r}): the record {short_repr(record)} has no such field") from None


def _check_declared(call: str, field: int | str, declared: TypeInformation) -> None:
    known = declared.wrapped if isinstance(declared, ExternalTypeInfo) else declared
    if not isinstance(known, (RowTypeInfo, TupleTypeInfo)):
        return
    names = known.get_field_names() if isinstance(known, RowTypeInfo) and known.has_names else []
    number = len(known.get_field_types())
    if not (field in names if isinstance(field, str) else -number <= field < number):
        has = ", ".join(names) if names else f"{number} without names"
        raise TypeMismatchError(f"{call}: the records are declared as {declared}, with the fields: {has}")


def _first_item(upstream: Transformation) -> list[Any]:
    """Return the first record if the program holds it: that of a collection which no operator has changed."""
    while isinstance(upstream, PartitionTransformation):
        upstream = upstream.upstream
    source = upstream.source if isinstance(upstream, SourceTransformation) else None
    return source.first_items() if isinstance(source, CollectionSource) else []
