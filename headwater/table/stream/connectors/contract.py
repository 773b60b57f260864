"""The contract of connectors of SQL on streams.

A package adds its own with an entry point of the group `headwater.table.connectors`: the name is what stands in
`'connector' = 'name'`, the object is a subclass of `Connector` without arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headwater.common.config.values import read_duration_ms
from headwater.common.connector import Sink, Source
from headwater.common.errors import SqlError
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.table.batch.options import TableOptions
from headwater.table.catalog.objects import CatalogTable, Identifier, ResolvedSchema
from headwater.table.plan.expressions import Rex
from headwater.table.stream.operators.partition_sink import PartitionCommit
from headwater.table.stream.operators.sink import Encoder
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types.logical import LogicalType


class ChangelogMode(Enum):
    """What changes a connector gives or takes."""

    APPEND = "I"
    """Rows are inserted, never changed."""
    UPSERT = "I,UA,D"
    """A row replaces the one with its primary key; a deletion may carry the key alone."""
    ALL = "I,UB,UA,D"
    """Every change is told in full: what was there before, too."""


@dataclass(frozen=True)
class Field:
    """A column that is read or written. `metadata`: the key of what the connector knows about a record."""

    name: str
    type: LogicalType
    metadata: str | None = None


@dataclass(frozen=True)
class TableContext:
    """A table, for its connector. Options that nobody asks for are an error, so ask for all that there are."""

    identifier: Identifier
    table: CatalogTable
    fields: tuple[Field, ...]
    """What is read (a part of the columns, in any order) or written (all persisted columns)."""
    options: TableOptions
    zone: str = "UTC"
    filters: tuple[Rex, ...] = ()
    """Conditions over the fields, by name: a source may leave out rows that do not meet them. They are checked
    again."""

    @property
    def schema(self) -> ResolvedSchema:
        return self.table.schema

    def error(self, text: str) -> SqlError:
        return SqlError(f"table '{self.identifier}': {text}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)

    @property
    def types(self) -> tuple[LogicalType, ...]:
        return tuple(each.type for each in self.fields)

    def duration_ms(self, key: str, default: int | None = None) -> int | None:
        """An option such as `'10 s'`, in milliseconds."""
        value = self.options.text(key)
        if value is None:
            return default
        try:
            return read_duration_ms(value)
        except ValueError as error:
            raise self.error(f"'{key}' = '{value}' is not {error}") from None

    def sink_parallelism(self) -> int | None:
        number = self.options.number("sink.parallelism")
        return None if number is None else int(number)

    def sink_guarantee(self) -> DeliveryGuarantee:
        """Of a sink that knows two, and is exactly once unless told otherwise."""
        name = self.options.text("sink.delivery-guarantee") or "exactly-once"
        if name not in ("exactly-once", "at-least-once"):
            raise self.error(f"'sink.delivery-guarantee' = '{name}': there is exactly-once and at-least-once")
        return DeliveryGuarantee[name.upper().replace("-", "_")]

    def refuse(self, options: Mapping[str, str]) -> None:
        """Refuse options that are not here, each with the reason."""
        for name, why in options.items():
            if self.options.text(name) is not None:
                raise self.error(f"'{name}' is not there: {why}")

    def no_metadata(self) -> None:
        """Refuse metadata columns."""
        for each in self.fields:
            if each.metadata is not None:
                raise self.error(f"column '{each.name}': this connector has no metadata '{each.metadata}'")


@dataclass(frozen=True)
class TableSource:
    """Where rows come from: a source of records, and what makes changes of them."""

    source: Source
    converter: Converter
    mode: ChangelogMode = ChangelogMode.APPEND
    parallelism: int | None = None
    """The only one it can have; None: any."""
    pushed: str = ""
    """What of the filters it checks itself, for people."""


@dataclass(frozen=True)
class TableSink:
    """Where rows go: a sink of records, and what makes them of rows."""

    sink: Sink
    encoder: Encoder
    mode: ChangelogMode = ChangelogMode.APPEND
    parallelism: int | None = None
    uses_key: bool = field(default=True)
    """Whether the table's primary key names its rows."""
    partitions: PartitionCommit | None = None
    """When partitions of the table are complete; None: nobody asks. Its records are then `PartitionDone`, too."""


class Connector:
    """Makes sources and sinks of tables. Override what it can."""

    data_options: tuple[str, ...] | None = None
    """The options that say which data a table is (a topic, a path). With another one of these it is another table, to
    which state does not belong; all others may change. None: all of them say it, but secrets."""

    def source(self, context: TableContext) -> TableSource:
        raise context.error("this connector cannot be read")

    def sink(self, context: TableContext) -> TableSink:
        raise context.error("nothing can be inserted: this connector cannot be written")

    def lookup(self, context: TableContext, keys: Sequence[str]) -> Any:
        """(a `Lookup` of rows by these columns, a `LookupCache` or None), for joins AS OF processing time.

        The rows have all columns of `context.fields`, in order.
        """
        raise context.error("this connector cannot be looked up in a join")
