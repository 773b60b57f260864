"""The columns of a CSV file and how they are written down."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.common.errors import ConfigurationError
from headwater.common.type_system.information import BasicTypeInfo, ListTypeInfo, TypeInformation
from headwater.common.typeinfo import Types
from headwater.datastream.formats.text_fields import NUMBERS, is_text_type

__all__ = ["CsvSchema", "CsvSchemaBuilder"]

NO_SEPARATOR = ""


@dataclass(frozen=True)
class CsvColumn:
    name: str
    type_info: TypeInformation
    separator: str | None = None
    """Between the elements of an array; None: that of the schema."""

    def separator_in(self, dialect: CsvDialect) -> str:
        return dialect.array_separator if self.separator is None else self.separator


@dataclass(frozen=True)
class CsvDialect:
    """How text becomes fields and back. `None` for a character: there is none."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    line_end: str = "\n"
    null: str | None = None
    array_separator: str = ";"
    comments: bool = False

    def of_csv_module(self) -> dict[str, Any]:
        """The settings as Python's csv module names them."""
        quoting = csv.QUOTE_MINIMAL if self.quote is not None else csv.QUOTE_NONE
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote or '"',
            "escapechar": self.escape,
            "doublequote": True,
            "quoting": quoting,
        }


def one_character(what: str, text: str) -> str:
    if not isinstance(text, str) or len(text) != 1:
        raise ConfigurationError(f"CSV: {what} is {text!r}; expected one character")
    return text


@dataclass(frozen=True)
class CsvSchema:
    """Columns in their order, and a dialect. Made by `CsvSchema.builder()`."""

    columns: tuple[CsvColumn, ...] = ()
    dialect: CsvDialect = field(default_factory=CsvDialect)
    use_header: bool = False
    strict_headers: bool = False
    skip_first_row: bool = False

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        return CsvSchemaBuilder()

    def size(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return self.size()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


class CsvSchemaBuilder:
    """Collects columns and settings. Types are those of `Types`; a number without one is a `Types.LONG()`."""

    def __init__(self) -> None:
        self._columns: list[CsvColumn] = []
        self._dialect = CsvDialect()
        self._use_header = False
        self._strict_headers = False
        self._skip_first_row = False

    def build(self) -> CsvSchema:
        if not self._columns:
            raise ConfigurationError("CsvSchema: there are no columns; add one, e.g. add_string_column('name')")
        return CsvSchema(
            tuple(self._columns), self._dialect, self._use_header, self._strict_headers, self._skip_first_row
        )

    # --- columns

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(CsvColumn(name, Types.STRING()))

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        return self._add(CsvColumn(name, Types.BOOLEAN()))

    def add_number_column(self, name: str, number_type: TypeInformation | None = None) -> CsvSchemaBuilder:
        number = Types.LONG() if number_type is None else number_type
        if not isinstance(number, BasicTypeInfo) or number.basic_type not in NUMBERS:
            raise ConfigurationError(
                f"CSV column {name!r}: {number_type!r} is not a type of numbers; expected one such as Types.INT() or "
                "Types.DOUBLE() (those of the Table API come with it)"
            )
        return self._add(CsvColumn(name, number))

    def add_array_column(
        self, name: str, separator: str = ";", element_type: TypeInformation | None = None
    ) -> CsvSchemaBuilder:
        element = Types.STRING() if element_type is None else element_type
        if not is_text_type(element):
            raise ConfigurationError(
                f"CSV column {name!r}: {element_type!r} cannot be an element of an array; expected a basic type "
                "such as Types.STRING() or Types.INT()"
            )
        return self._add(CsvColumn(name, ListTypeInfo(element), separator))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        for column in schema.columns:
            self._add(column)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        self._columns.clear()
        return self

    def _add(self, column: CsvColumn) -> CsvSchemaBuilder:
        if any(known.name == column.name for known in self._columns):
            raise ConfigurationError(f"CSV column {column.name!r} is there twice; names must differ")
        self._columns.append(column)
        return self

    def size(self) -> int:
        return len(self._columns)

    def __len__(self) -> int:
        return self.size()

    # --- arrays

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """For columns that have none of their own."""
        return self._set(array_separator=separator)

    def disable_array_element_separator(self) -> CsvSchemaBuilder:
        return self._set(array_separator=NO_SEPARATOR)

    def remove_array_element_separator(self, index: int) -> CsvSchemaBuilder:
        """Column `index` is then an array of one element."""
        self._columns[index] = replace(self._columns[index], separator=NO_SEPARATOR)
        return self

    # --- dialect

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        return self._set(delimiter=one_character("column separator", char))

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        return self._set(quote=one_character("quote char", char))

    def disable_quote_char(self) -> CsvSchemaBuilder:
        return self._set(quote=None)

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        return self._set(escape=one_character("escape char", char))

    def disable_escape_char(self) -> CsvSchemaBuilder:
        return self._set(escape=None)

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """What is written after each record. When files are read, LF and CR LF end lines."""
        return self._set(line_end=separator)

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The text that stands for None. Without it None is written as nothing, and an empty number is None."""
        return self._set(null=null_value)

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Lines that begin with '#' are no records."""
        return self._set(comments=allow)

    def set_any_property_name(self, name: str) -> CsvSchemaBuilder:
        raise ConfigurationError(
            f"CSV: set_any_property_name({name!r}) would collect fields beyond the columns, and a Row has a fixed "
            "number of fields; add a column for each"
        )

    def _set(self, **settings: Any) -> CsvSchemaBuilder:
        self._dialect = replace(self._dialect, **settings)
        return self

    # --- the first line

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """The first line holds names: it is skipped when a file is read, and written at the start of each file."""
        self._use_header = use
        return self

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """The names of the first line must be those of the columns, in their order."""
        self._strict_headers = strict
        return self

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """Skip the first line, whatever it holds."""
        self._skip_first_row = skip
        return self
