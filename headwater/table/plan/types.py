"""From types as they are written to logical types."""

from __future__ import annotations

from headwater.table.parser.ast.base import DataType
from headwater.table.parser.printing.names import data_type
from headwater.table.parser.tokens import located
from headwater.table.types.logical import LogicalType
from headwater.table.types.type_text import parse_type


def logical_type(written: DataType, sql: str) -> LogicalType:
    """The type that was written at a place of `sql`. Lengths and precisions out of range are a SqlError there."""
    try:
        return parse_type(data_type(_plain(written)))
    except ValueError as error:
        raise located(str(error), sql, written.span) from None


_WITHOUT_LENGTH = {"VARCHAR": "STRING", "VARBINARY": "BYTES"}
"""As Flink takes them in SQL. (Its documentation says that they have the length 1.)"""


def _plain(written: DataType) -> DataType:
    """REAL is FLOAT to the rest of headwater."""
    name = "FLOAT" if written.name == "REAL" else written.name
    if not written.parameters:
        name = _WITHOUT_LENGTH.get(name, name)
    arguments = tuple(_plain(argument) for argument in written.arguments)
    return DataType(name, written.parameters, arguments, written.field_names, written.field_comments, written.nullable)
