"""The types of SQL: logical types, their text, casts between them, and how Arrow and Spark hold their values."""

from headwater.common.types import Row, RowKind
from headwater.table.types.data_types import DataTypes

__all__ = ["DataTypes", "Row", "RowKind"]
