"""The columns of a table as `Table.get_schema` gives them: a row type with the getters of pyflink.table.TableSchema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.table.types.logical import LogicalType, RowField, RowType


@dataclass(frozen=True)
class TableSchema(RowType):
    """Names and types, in order."""

    @staticmethod
    def of(names: Sequence[str], types: Sequence[LogicalType]) -> TableSchema:
        fields = (RowField(name, type_) for name, type_ in zip(names, types, strict=True))
        return TableSchema(fields=tuple(fields), nullable=False)

    @staticmethod
    def builder() -> Builder:
        return TableSchema.Builder()

    class Builder:
        """Collects columns."""

        def __init__(self) -> None:
            self._fields: list[RowField] = []

        def field(self, name: str, data_type: LogicalType) -> TableSchema.Builder:
            self._fields.append(RowField(name, data_type))
            return self

        def build(self) -> TableSchema:
            return TableSchema(fields=tuple(self._fields), nullable=False)

    def copy(self) -> TableSchema:
        return self

    def get_field_count(self) -> int:
        return len(self.fields)

    def get_field_names(self) -> list[str]:
        return [each.name for each in self.fields]

    def get_field_name(self, field_index: int) -> str | None:
        """None if there is no such column."""
        return self.fields[field_index].name if 0 <= field_index < len(self.fields) else None

    def get_field_data_types(self) -> list[LogicalType]:
        return [each.type for each in self.fields]

    def get_field_data_type(self, field: int | str) -> LogicalType | None:
        """By place (from 0) or name; None if there is no such column."""
        if isinstance(field, int):
            return self.fields[field].type if 0 <= field < len(self.fields) else None
        found = self.field(field)
        return None if found is None else found.type

    def to_row_data_type(self) -> RowType:
        return RowType(fields=self.fields, nullable=False)
