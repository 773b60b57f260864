"""What catalogs hold: tables, views, databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.common.errors import SqlError
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

    @staticmethod
    def from_string(full_name: str) -> ObjectPath:
        """`database.name`"""
        database, _, name = full_name.partition(".")
        if not database or not name or "." in name:
            raise SqlError(f"'{full_name}' is no path: it has two parts, database.name")
        return ObjectPath(database, name)

    def __str__(self) -> str:
        return self.get_full_name()


@dataclass(frozen=True)
class Identifier:
    """The full name of an object: catalog, database, name."""

    catalog: str
    database: str
    name: str

    @staticmethod
    def of(catalog_name: str, database_name: str, object_name: str) -> Identifier:
        return Identifier(catalog_name, database_name, object_name)

    @property
    def path(self) -> ObjectPath:
        return ObjectPath(self.database, self.name)

    def get_catalog_name(self) -> str:
        return self.catalog

    def get_database_name(self) -> str:
        return self.database

    def get_object_name(self) -> str:
        return self.name

    def to_object_path(self) -> ObjectPath:
        return self.path

    def to_list(self) -> list[str]:
        return [self.catalog, self.database, self.name]

    def as_serializable_string(self) -> str:
        return self.quoted()

    def as_summary_string(self) -> str:
        return str(self)

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

    def get_name(self) -> str:
        return self.name

    def get_data_type(self) -> LogicalType:
        return self.type

    def get_comment(self) -> str | None:
        return self.comment

    def is_physical(self) -> bool:
        return self.expression is None and self.metadata_key is None

    def is_persisted(self) -> bool:
        """Whether INSERT writes it."""
        return self.expression is None and not self.virtual


@dataclass(frozen=True)
class WatermarkSpec:
    column: tuple[str, ...]
    expression: Expression


@dataclass(frozen=True)
class UniqueConstraint:
    """A primary key. It is not enforced: rows come from outside."""

    name: str
    columns: tuple[str, ...]

    def get_name(self) -> str:
        return self.name

    def get_columns(self) -> list[str]:
        return list(self.columns)

    def is_enforced(self) -> bool:
        return False


@dataclass(frozen=True)
class ResolvedSchema:
    """The columns of a table with their types; watermark and primary key."""

    columns: tuple[TableColumn, ...]
    watermark: WatermarkSpec | None = None
    primary_key: tuple[str, ...] = ()
    primary_key_name: str | None = None

    def get_columns(self) -> list[TableColumn]:
        return list(self.columns)

    def get_column_count(self) -> int:
        return len(self.columns)

    def get_column(self, column_index_or_name: int | str) -> TableColumn | None:
        """By place (from 0) or name; None if there is no such column."""
        if isinstance(column_index_or_name, str):
            return self.column(column_index_or_name)
        return self.columns[column_index_or_name] if 0 <= column_index_or_name < len(self.columns) else None

    def get_column_names(self) -> list[str]:
        return list(self.names())

    def get_column_data_types(self) -> list[LogicalType]:
        return [column.type for column in self.columns]

    def get_watermark_specs(self) -> list[WatermarkSpec]:
        return [] if self.watermark is None else [self.watermark]

    def get_primary_key(self) -> UniqueConstraint | None:
        if not self.primary_key:
            return None
        return UniqueConstraint(self.primary_key_name or f"PK_{'_'.join(self.primary_key)}", self.primary_key)

    def get_primary_key_indexes(self) -> list[int]:
        return [self.names().index(name) for name in self.primary_key]

    def to_source_row_data_type(self) -> RowType:
        """All columns."""
        return RowType(fields=tuple(RowField(each.name, each.type) for each in self.columns), nullable=False)

    def to_physical_row_data_type(self) -> RowType:
        return self.physical_row()

    def to_sink_row_data_type(self) -> RowType:
        """What INSERT writes."""
        return RowType(fields=tuple(RowField(each.name, each.type) for each in self.sink_columns()), nullable=False)

    def column(self, name: str) -> TableColumn | None:
        return next((column for column in self.columns if column.name == name), None)

    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def physical_row(self) -> RowType:
        """What the connector reads and writes."""
        fields = (RowField(column.name, column.type) for column in self.columns if column.is_physical())
        return RowType(fields=tuple(fields), nullable=False)

    def sink_columns(self) -> tuple[TableColumn, ...]:
        return tuple(column for column in self.columns if column.is_persisted())


class CatalogBaseTable:
    """What `Catalog.get_table` gives: a CatalogTable or a CatalogView."""

    schema: ResolvedSchema
    comment: str | None

    @staticmethod
    def create_table(
        schema: ResolvedSchema | RowType,
        partition_keys: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogTable:
        """A table for `Catalog.create_table`. `properties` are its options: connector, path and so on."""
        if isinstance(schema, RowType):
            schema = ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in schema.fields))
        return CatalogTable(schema, dict(properties or {}), tuple(partition_keys), comment)

    def get_options(self) -> dict[str, str]:
        return {}

    def get_comment(self) -> str:
        return self.comment or ""

    def get_description(self) -> str:
        return self.get_comment()

    def get_resolved_schema(self) -> ResolvedSchema:
        """The columns with their types."""
        return self.schema

    def copy(self) -> CatalogBaseTable:
        """The same: tables of a catalog do not change, they are replaced."""
        return self


@dataclass(frozen=True)
class CatalogTable(CatalogBaseTable):
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

    def get_options(self) -> dict[str, str]:
        return dict(self.options)

    def is_partitioned(self) -> bool:
        return bool(self.partition_keys)

    def get_partition_keys(self) -> list[str]:
        return list(self.partition_keys)


@dataclass(frozen=True)
class CatalogView(CatalogBaseTable):
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
class CatalogDatabase:
    """A database and what is in it."""

    comment: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    tables: dict[str, CatalogTable | CatalogView] = field(default_factory=dict)

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogDatabase:
        return CatalogDatabase(comment, dict(properties))

    def get_properties(self) -> dict[str, str]:
        return dict(self.options)

    def get_comment(self) -> str:
        return self.comment or ""

    def get_description(self) -> str:
        return self.get_comment()
