"""One row as one CSV record: between the bytes of a message and a Row."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.serialization import DeserializationSchema, SerializationSchema
from headwater.common.type_system.information import RowTypeInfo, TypeInformation
from headwater.common.types import Row
from headwater.datastream.formats.csv_schema import CsvColumn, CsvDialect, one_character
from headwater.datastream.formats.text_fields import fields_of, from_text, to_text

__all__ = ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"]


class RowFromFields:
    """Makes Rows of the fields of CSV records."""

    def __init__(self, columns: Sequence[CsvColumn], dialect: CsvDialect) -> None:
        self.names = [column.name for column in columns]
        self._converters = [from_text(each.type_info, each.separator_in(dialect)) for each in columns]
        self._null = dialect.null

    def __call__(self, fields: Sequence[str]) -> Row:
        """Raises ValueError if the fields do not fit the columns."""
        if len(fields) != len(self.names):
            raise ValueError(f"{len(fields)} fields where {len(self.names)} were expected: {self.names}")
        row = Row(*[self._value(index, text) for index, text in enumerate(fields)])
        row.set_field_names(self.names)
        return row

    def _value(self, index: int, text: str) -> Any:
        if text == self._null:
            return None
        try:
            return self._converters[index](text)
        except ValueError as error:
            if not text and self._null is None:
                return None  # an empty number is None, if nothing else stands for None
            raise ValueError(f"column {self.names[index]!r}: {error}") from None


class FieldsFromRow:
    """Makes the fields of CSV records of Rows, tuples and dicts."""

    def __init__(self, columns: Sequence[CsvColumn], dialect: CsvDialect) -> None:
        self._names = [column.name for column in columns]
        self._converters = [to_text(each.type_info, each.separator_in(dialect)) for each in columns]
        self._null = dialect.null or ""

    def __call__(self, value: Any) -> list[str]:
        try:
            values = fields_of(value, self._names)
            return [
                self._null if each is None else convert(each)
                for each, convert in zip(values, self._converters, strict=True)
            ]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SerializationError(
                f"record {short_repr(value)} does not fit the CSV columns {self._names}: {error}"
            ) from error


def columns_of(type_info: TypeInformation) -> list[CsvColumn]:
    if not isinstance(type_info, RowTypeInfo):
        raise ConfigurationError(f"CSV rows: the type is {type_info!r}; expected Types.ROW or Types.ROW_NAMED")
    return [
        CsvColumn(name, of) for name, of in zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
    ]


def csv_line(fields: Sequence[str], dialect: CsvDialect) -> str:
    text = io.StringIO()
    try:
        csv.writer(text, lineterminator=dialect.line_end, **dialect.of_csv_module()).writerow(fields)
    except csv.Error as error:
        raise SerializationError(
            f"CSV fields {short_repr(fields)} cannot be written: {error}; set a quote or an escape character"
        ) from None
    return text.getvalue()


class _Builder:
    """Settings for rows of `type_info`, a type made by `Types.ROW` or `Types.ROW_NAMED`."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._columns = columns_of(type_info)
        self._dialect = CsvDialect()

    def set_array_element_delimiter(self, delimiter: str) -> Self:
        return self._set(array_separator=delimiter)

    def set_quote_character(self, c: str) -> Self:
        return self._set(quote=one_character("quote character", c))

    def set_escape_character(self, c: str) -> Self:
        return self._set(escape=one_character("escape character", c))

    def _set(self, **settings: Any) -> Self:
        self._dialect = replace(self._dialect, **settings)
        return self


class CsvRowDeserializationSchema(DeserializationSchema):
    """A Row of one CSV record. Bad ones are errors, or None if parse errors are ignored."""

    def __init__(self, columns: Sequence[CsvColumn], dialect: CsvDialect, ignore_parse_errors: bool) -> None:
        self._dialect = dialect
        self._to_row = RowFromFields(columns, dialect)
        self._ignore_parse_errors = ignore_parse_errors

    def deserialize(self, message: bytes) -> Any:
        try:
            text = message.decode()
            if self._dialect.comments and text.startswith("#"):
                return None
            (fields,) = csv.reader([text], strict=True, **self._dialect.of_csv_module())
            return self._to_row(fields)
        except (ValueError, csv.Error) as error:
            if self._ignore_parse_errors:
                return None
            raise SerializationError(
                f"CSV: {short_repr(message)}: {error}; correct it at its origin, or set_ignore_parse_errors(True)"
            ) from None

    class Builder(_Builder):
        """The settings, and what to do with bad records."""

        _ignore_parse_errors = False

        def set_field_delimiter(self, delimiter: str) -> Self:
            return self._set(delimiter=one_character("field delimiter", delimiter))

        def set_allow_comments(self, allow_comments: bool) -> Self:
            return self._set(comments=allow_comments)

        def set_null_literal(self, null_literal: str) -> Self:
            return self._set(null=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> Self:
            self._ignore_parse_errors = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            return CsvRowDeserializationSchema(self._columns, self._dialect, self._ignore_parse_errors)


class CsvRowSerializationSchema(SerializationSchema):
    """One CSV record of a Row, its line end included."""

    insert_only = True

    def __init__(self, columns: Sequence[CsvColumn], dialect: CsvDialect) -> None:
        self._dialect = dialect
        self._to_fields: Callable[[Any], list[str]] = FieldsFromRow(columns, dialect)

    def serialize(self, value: Any) -> bytes:
        return csv_line(self._to_fields(value), self._dialect).encode()

    class Builder(_Builder):
        """The settings, and how records end."""

        def set_field_delimiter(self, c: str) -> Self:
            return self._set(delimiter=one_character("field delimiter", c))

        def set_line_delimiter(self, delimiter: str) -> Self:
            """May be empty, where messages need no line end."""
            return self._set(line_end=delimiter)

        def disable_quote_character(self) -> Self:
            return self._set(quote=None)

        def set_null_literal(self, s: str) -> Self:
            return self._set(null=s)

        def build(self) -> CsvRowSerializationSchema:
            return CsvRowSerializationSchema(self._columns, self._dialect)
