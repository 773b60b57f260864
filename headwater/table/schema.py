"""The unresolved schema of a table, for descriptors."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.expression import Expression, type_node
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.parse import parse_expression, parse_type
from headwater.table.types.logical import LogicalType, RowType


class Schema:
    """Columns, watermark and primary key. `Schema.new_builder().column("id", DataTypes.INT()).build()`"""

    def __init__(
        self, columns: tuple[ast.Column, ...], watermark: ast.Watermark | None, keys: tuple[ast.Key, ...]
    ) -> None:
        self.columns = columns
        self.watermark = watermark
        self.keys = keys

    @staticmethod
    def new_builder() -> Schema.Builder:
        return Schema.Builder()

    class Builder:
        def __init__(self) -> None:
            self._columns: list[ast.Column] = []
            self._watermark: ast.Watermark | None = None
            self._keys: list[ast.Key] = []

        def column(self, column_name: str, data_type: str | LogicalType) -> Schema.Builder:
            """A physical column."""
            written = parse_type(data_type) if isinstance(data_type, str) else type_node(data_type)
            return self._add(ast.Column(column_name, written))

        def column_by_expression(self, column_name: str, expr: str | Expression) -> Schema.Builder:
            node = parse_expression(expr) if isinstance(expr, str) else expr.node
            return self._add(ast.Column(column_name, expression=node))

        def column_by_metadata(
            self,
            column_name: str,
            data_type: str | LogicalType,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            written = parse_type(data_type) if isinstance(data_type, str) else type_node(data_type)
            column = ast.Column(column_name, written, metadata=True, metadata_key=metadata_key, virtual=is_virtual)
            return self._add(column)

        def from_row_data_type(self, data_type: RowType) -> Schema.Builder:
            for each in data_type.fields:
                self.column(each.name, each.type)
            return self

        def from_fields(self, field_names: list[str], field_data_types: list[LogicalType]) -> Schema.Builder:
            for name, data_type in zip(field_names, field_data_types, strict=True):
                self.column(name, data_type)
            return self

        def watermark(self, column_name: str, watermark_expr: str | Expression) -> Schema.Builder:
            node = parse_expression(watermark_expr) if isinstance(watermark_expr, str) else watermark_expr.node
            self._watermark = ast.Watermark((column_name,), node)
            return self

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """All of another schema."""
            for column in unresolved_schema.columns:
                self._add(column)
            self._watermark = unresolved_schema.watermark or self._watermark
            self._keys.extend(unresolved_schema.keys)
            return self

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            self._keys.append(ast.Key("PRIMARY KEY", column_names, name=constraint_name))
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            self._keys.append(ast.Key("PRIMARY KEY", column_names))
            return self

        def _add(self, column: ast.Column) -> Schema.Builder:
            if any(column.name == known.name for known in self._columns):
                raise SqlError(f"column '{column.name}' is defined twice")
            self._columns.append(column)
            return self

        def build(self) -> Schema:
            return Schema(tuple(self._columns), self._watermark, tuple(self._keys))
