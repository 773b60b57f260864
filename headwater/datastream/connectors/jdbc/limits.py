"""What the columns of a table refuse, so that a row is refused before a checkpoint promises it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from headwater.common.errors import SerializationError, short_repr
from headwater.common.typeinfo import BasicType, BasicTypeInfo, TypeInformation

_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
"""Numbers of these types are in their range: rows are checked against the declared type."""
_FRACTIONS: Final = frozenset((BasicType.FLOAT, BasicType.DOUBLE, BasicType.BIG_DEC))


class ColumnLimits(msgspec.Struct, frozen=True):
    """What a column takes."""

    name: str
    declared: str
    """Its type in the database, for people."""
    not_null: bool = False
    characters: int | None = None
    """A text may have as many; spaces behind them are cut off by the database."""
    bits: int | None = None
    """A whole number that has this many bits, with its sign."""
    unsigned: bool = False
    digits: int | None = None
    """A decimal number that has this many digits before the point ..."""
    scale: int = 0
    """... and is rounded to this many behind it."""

    @property
    def limited(self) -> bool:
        return self.not_null or self.characters is not None or self.bits is not None or self.digits is not None

    def never_exceeded(self, declared: TypeInformation) -> bool:
        """Return True if no number of the declared type is too large."""
        bits = _BITS.get(declared.basic_type, 65) if isinstance(declared, BasicTypeInfo) else 65
        return self.digits is None and (self.bits is None or (bits <= self.bits and not self.unsigned))

    def refuses(self, value: Any) -> str:
        """Why the column does not take the value; "" if it does."""
        if value is None:
            return "it takes no NULL" if self.not_null else ""
        if isinstance(value, str):
            most = self.characters
            too_long = most is not None and len(value) > most and value[most:].strip(" ")
            return f"its texts have at most {most} characters, and this one has {len(value)}" if too_long else ""
        if isinstance(value, (int, float, Decimal)) and not self._holds(value):
            return "the number is out of its range"
        return ""

    def _holds(self, value: Any) -> bool:
        if self.bits is not None:
            if value != value or value in (float("inf"), -float("inf")):
                return False
            most = (1 << self.bits) - 1 if self.unsigned else (1 << (self.bits - 1)) - 1
            return bool((0 if self.unsigned else -most - 1) <= round(value) <= most)
        if self.digits is not None and value == value:
            return bool(abs(value) < Decimal(1).scaleb(self.digits) - Decimal(5).scaleb(-self.scale - 1))
        return True


class TableLimits(msgspec.Struct, frozen=True):
    """The limits of the columns that a statement's values go to, in their order."""

    table: str
    columns: tuple[ColumnLimits, ...]

    def rounds(self, types: Sequence[TypeInformation]) -> bool:
        """Return True if a number with a fraction is for a column without: statements round it, COPY would fail."""
        return any(
            column.bits is not None and isinstance(declared, BasicTypeInfo) and declared.basic_type in _FRACTIONS
            for column, declared in zip(self.columns, types, strict=True)
        )

    def check(self, rows: Sequence[Sequence[Any]], types: Sequence[TypeInformation], owner: str) -> None:
        """Raise SerializationError for the first row that the table would refuse."""
        for at, (column, declared) in enumerate(zip(self.columns, types, strict=True)):
            if not column.limited:
                continue
            values = [row[at] for row in rows]
            if column.characters is None and column.never_exceeded(declared):
                if not column.not_null or None not in values:
                    continue
            elif set(map(type, values)) == {str} and max(map(len, values)) <= (column.characters or 0):
                continue
            for row, value in zip(rows, values, strict=True):
                if why := column.refuses(value):
                    raise SerializationError(
                        f"{owner}: column '{column.name}' of table '{self.table}' is {column.declared}, and {why}: "
                        f"{short_repr(value)}; row: {short_repr(list(row))}. Change the row, or the table, and start "
                        "the job again"
                    )
