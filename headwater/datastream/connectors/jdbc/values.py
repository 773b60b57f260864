"""Records turned into the values of a statement, checked against the declared type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from headwater.common.errors import (
    ConfigurationError,
    HeadwaterError,
    SerializationError,
    TypeMismatchError,
    short_repr,
)
from headwater.common.time import Instant
from headwater.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    compile_batch_checker,
)
from headwater.datastream.connectors.jdbc.limits import TableLimits

Values = Sequence[Any]


class RowValues:
    """Takes rows apart. Picklable."""

    def __init__(self, type_info: TypeInformation, parameters: int, owner: str) -> None:
        if not isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
            raise ConfigurationError(
                f"{owner}: expected the type of rows, such as Types.ROW([Types.INT(), Types.STRING()]), found "
                f"{short_repr(type_info, 100)}"
            )
        self.types: list[TypeInformation] = type_info.get_field_types()
        if len(self.types) != parameters:
            raise ConfigurationError(
                f"{owner}: the statement has {parameters} values (?), and rows of {type_info!r} have "
                f"{len(self.types)} fields"
            )
        self._type_info = type_info
        self._owner = owner

    def compile(self, limits: TableLimits | None) -> Callable[[Sequence[Any]], list[Values]]:
        """Return what makes value lists of a batch of records. It raises SerializationError, with the record."""
        check = compile_batch_checker(self._type_info)
        converted = [
            (index, convert) for index, type_info in enumerate(self.types) if (convert := _converter(type_info))
        ]

        def values_of(records: Sequence[Any]) -> list[Values]:
            try:
                rows = check(list(records))
            except TypeMismatchError as error:
                raise SerializationError(f"{self._owner}: {error}") from None
            found: list[Any] = [getattr(row, "_values", row) for row in rows]
            if converted:
                found = [_changed(values, converted) for values in found]
            if limits is not None:
                limits.check(found, self.types, self._owner)
            return found

        return values_of

    def blame(
        self, rows: Sequence[Values], encode: Callable[[Sequence[Values]], Any], error: Exception
    ) -> HeadwaterError:
        """Return the error, with the first row that cannot be encoded."""
        for row in rows:
            try:
                encode([row])
            except Exception as cause:
                return SerializationError(f"{self._owner}: {cause}; row: {short_repr(list(row))}")
        return SerializationError(f"{self._owner}: {error}")


def _changed(values: Values, converted: list[tuple[int, Callable[[Any], Any]]]) -> list[Any]:
    found = list(values)
    for index, convert in converted:
        if found[index] is not None:
            found[index] = convert(found[index])
    return found


def _converter(type_info: TypeInformation) -> Callable[[Any], Any] | None:
    """For values that no driver knows."""
    if isinstance(type_info, MapTypeInfo):
        return lambda value: msgspec.json.encode(value).decode()
    if isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.INSTANT:
        return _utc
    return None


def _utc(value: Any) -> Any:
    if isinstance(value, Instant):
        return datetime.fromtimestamp(value.seconds, UTC).replace(microsecond=value.nanos // 1000)
    return value
