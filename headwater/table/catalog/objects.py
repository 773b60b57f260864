"""What catalogs hold: tables, views, databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.table.parser.ast.base import Expression, Query
from headwater.table.types.logical import LogicalType, RowField, RowType


@dataclass(frozen=True)
class ObjectPath:
    """The database and the name of an object in a catalog."""

    database_name: str
    object_name: str

    def get_database_name(self) -> str:
        return self.database_name

    def get_object_name(self) -> str:
        return self.object_name

    def get_full_name(self) -> str:
        return f"{self.database_name}.{self.object_name}"

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class Identifier:
    """The full name of an object: catalog, database, name."""

    catalog: str
    database: str
    name: str

    @property
    def path(self) -> ObjectPath:
        return ObjectPath(self.database, self.name)

    def __str__(self) -> str:
        return f"{self.catalog}.{self.database}.{self.name}"

    def quoted(self) -> str:
        """As Flink writes it: `a`.`b`.`c`."""
        return ".".join(f"`{part}`" for part in (self.catalog, self.database, self.name))


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: physical, computed from others (`expression`), or metadata of its connector."""

    name: str
    type: LogicalType
    expression: Expression | None = None
    metadata_key: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def is_physical(self) -> bool:
        return self.expression is None and self.metadata_key is None

    @property
    def is_persisted(self) -> bool:
        """Whether INSERT writes it."""
        return self.expression is None and not self.virtual


@dataclass(frozen=True)
class WatermarkSpec:
    column: tuple[str, ...]
    expression: Expression


@dataclass(frozen=True)
class ResolvedSchema:
    """The columns of a table with their types; watermark and primary key."""

    columns: tuple[TableColumn, ...]
    watermark: WatermarkSpec | None = None
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None

    def column(self, name: str) -> TableColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def physical_row(self) -> RowType:
        """What the connector reads and writes."""
        fields = (RowField(column.name, column.type) for column in self.columns if column.is_physical)
        return RowType(fields=tuple(fields), nullable=False)

    def sink_columns(self) -> tuple[TableColumn, ...]:
        return tuple(column for column in self.columns if column.is_persisted)


@dataclass(frozen=True)
class CatalogTable:
    """A table: its schema, and options that say where its rows are.

    `sql` is the text that the expressions of its computed columns and its watermark stand in.
    """

    schema: ResolvedSchema
    options: Mapping[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None
    sql: str = ""
    rows: Any = None
    """Of a table made of Python values: the values, an Arrow table or a DataFrame; then `options` are empty."""


@dataclass(frozen=True)
class CatalogView:
    """A query with a name. `plan` is that of a view over a Table; otherwise the query is bound where it is used."""

    schema: ResolvedSchema
    query: Query | None = None
    sql: str = ""
    catalog: str = ""
    database: str = ""
    """What unqualified names in the query refer to."""
    plan: Any = None
    comment: str | None = None


@dataclass
class Database:
    comment: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    tables: dict[str, CatalogTable | CatalogView] = field(default_factory=dict)
